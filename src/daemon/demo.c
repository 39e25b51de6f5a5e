/*
 * Five provider entries, one for each profile of `idem sandbox`, each declared to be exactly what
 * the profile is, so that every row of the recovery table can be watched. The bearers are
 * "demo-secret" and "demo-operator"; the sandbox takes any bearer, so `idem serve --demo` puts one
 * into the environment if there is none. Timings are quick: an unknown outcome is asked about after
 * half a second instead of five.
 */
#include "daemon/demo.h"

const char idem_demo_config[] =
    "listen = \"127.0.0.1:8080\";\n"
    "store = \"sqlite:build/demo/idem.db\";\n"
    "disk_reserve_mb = 16;\n"
    "credentials = (\n"
    "  { principal = \"demo\"; role = \"merchant\";\n"
    "    secret_sha256 = \"cd577fe2561ebff23505db0bb006300c7cdecbd46bc0e03c449afafaca2c25bf\";\n"
    "    providers = [ \"sandbox\", \"sandbox-lagging\", \"sandbox-closing\", \"sandbox-plain\",\n"
    "                  \"sandbox-blind\" ]; },\n"
    "  { principal = \"demo-operator\"; role = \"operator\";\n"
    "    secret_sha256 = \"9437e87fae95c03d3778f2575bb18ce30e647e51d86a8c37963364e1fc4f374e\"; }\n"
    ");\n"
    "providers = (\n"
    "  { entry = \"sandbox\"; adapter = \"bridge\"; base_url = \"http://127.0.0.1:8081/dedup\";\n"
    "    credential_env = \"IDEM_SANDBOX_CREDENTIAL\";\n"
    "    request_timeout_ms = 5000; settle_ms = 1000; partial_capture = \"many\"; listing = true;\n"
    "    capabilities = { dedup_window_s = 86400; dedup_margin_s = 60; query = \"at_once\";\n"
    "                     close_is_final = true; }; },\n"
    "  { entry = \"sandbox-lagging\"; adapter = \"bridge\";\n"
    "    base_url = \"http://127.0.0.1:8081/lagging\";\n"
    "    credential_env = \"IDEM_SANDBOX_CREDENTIAL\";\n"
    "    request_timeout_ms = 5000; settle_ms = 3000; partial_capture = \"many\"; listing = true;\n"
    "    capabilities = { dedup_window_s = 86400; dedup_margin_s = 60; query = \"lagging\";\n"
    "                     query_lag_ms = 3500; close_is_final = true; }; },\n"
    "  { entry = \"sandbox-closing\"; adapter = \"bridge\";\n"
    "    base_url = \"http://127.0.0.1:8081/closing\";\n"
    "    credential_env = \"IDEM_SANDBOX_CREDENTIAL\";\n"
    "    request_timeout_ms = 5000; settle_ms = 1000; partial_capture = \"many\"; listing = true;\n"
    "    capabilities = { query = \"at_once\"; close_is_final = true; }; },\n"
    "  { entry = \"sandbox-plain\"; adapter = \"bridge\";\n"
    "    base_url = \"http://127.0.0.1:8081/plain\";\n"
    "    credential_env = \"IDEM_SANDBOX_CREDENTIAL\";\n"
    "    request_timeout_ms = 5000; settle_ms = 1000; partial_capture = \"many\"; listing = true;\n"
    "    capabilities = { query = \"at_once\"; }; },\n"
    "  { entry = \"sandbox-blind\"; adapter = \"bridge\";\n"
    "    base_url = \"http://127.0.0.1:8081/blind\";\n"
    "    credential_env = \"IDEM_SANDBOX_CREDENTIAL\";\n"
    "    request_timeout_ms = 5000; settle_ms = 1000; partial_capture = \"many\";\n"
    "    capabilities = { dedup_window_s = 86400; dedup_margin_s = 60; }; }\n"
    ");\n"
    "timings = { lease_ms = 8000; ask_first_ms = 500; ask_max_ms = 10000; stop_grace_ms = 10000; "
    "};\n";
