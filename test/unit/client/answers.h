/*
 * answers.h - answers as APIs, proxies and captive portals send them, and how a careful person
 * would read each; for meaning.c. Shapes and words are those of the APIs' documentation.
 */
#ifndef IDEM_TEST_CLIENT_ANSWERS_H
#define IDEM_TEST_CLIENT_ANSWERS_H

#include <stdint.h>

#include "client/meaning.h"

#define KEY "8e03978e-40d5-43e8-bc93-6894a57f9324"

#define JSON      "application/json"
#define PROBLEM   "application/problem+json"
#define HTML      "text/html; charset=utf-8"
#define IDEM_ECHO "Idempotency-Key: \"" KEY "\"\n"
#define NEW       IDEM_ECHO "Idempotent-Replayed: false\n"
#define OLD       IDEM_ECHO "Idempotent-Replayed: true\n"

#define OURS(code, effect, retry)        \
    "{\"type\":\"urn:idem:problem:" code \
    "\",\"title\":\"t\",\"status\":400," \
    "\"effect\":\"" effect "\",\"retry\":\"" retry "\",\"detail\":\"Some words.\"}\n"

#define STRIPE_ERROR(type, code)               \
    "{\n  \"error\": {\n    \"code\": \"" code \
    "\",\n    \"doc_url\": \"https://s\",\n"   \
    "    \"message\": \"Words.\",\n    \"type\": \"" type "\"\n  }\n}\n"
#define STRIPE_MISMATCH                                                                      \
    "{\"error\":{\"message\":\"Keys for idempotent requests can only be used with the same " \
    "parameters they were first used with.\",\"type\":\"idempotency_error\"}}"
#define ADYEN_ERROR(status, code, type)            \
    "{\"status\":" status ",\"errorCode\":\"" code \
    "\",\"message\":\"Words\","                    \
    "\"errorType\":\"" type "\",\"pspReference\":\"852\"}"
#define PAYPAL_ERROR(name, issue)                             \
    "{\"name\":\"" name "\",\"details\":[{\"issue\":\"" issue \
    "\",\"description\":"                                     \
    "\"Words.\"}],\"message\":\"Words.\",\"debug_id\":\"90957fca61718\",\"links\":[]}"
#define NGINX(text) "<html>\r\n<head><title>" text "</title></head>\r\n<body>nginx</body></html>"

#define DONE        IDEM_MEANING_DONE, IDEM_NEXT_STOP
#define REFUSED     IDEM_MEANING_REFUSED, IDEM_NEXT_STOP
#define AWAY_STOP   IDEM_MEANING_TURNED_AWAY, IDEM_NEXT_STOP
#define AWAY_AGAIN  IDEM_MEANING_TURNED_AWAY, IDEM_NEXT_AGAIN
#define AWAY_ASK    IDEM_MEANING_TURNED_AWAY, IDEM_NEXT_ASK
#define RUN_AGAIN   IDEM_MEANING_RUNNING, IDEM_NEXT_AGAIN
#define RUN_ASK     IDEM_MEANING_RUNNING, IDEM_NEXT_ASK
#define UNSURE      IDEM_MEANING_UNSURE, IDEM_NEXT_STOP
#define UNSURE_ASK  IDEM_MEANING_UNSURE, IDEM_NEXT_ASK
#define UNSURE_SAME IDEM_MEANING_UNSURE, IDEM_NEXT_AGAIN

static const struct {
    const char *what;
    const char *dialect;
    uint16_t status;
    const char *type;
    const char *head;
    const char *body;
    enum idem_meaning meaning;
    enum idem_next next;
} answers[] = {
    /* idem */
    { "a payment is made", "idem", 201, JSON, NEW "Location: /v1/payments/1\n", "{\"id\":\"1\"}\n",
      DONE },
    { "the same, shown again", "idem", 201, JSON, OLD, "{\"id\":\"1\"}\n", DONE },
    { "the key comes back bare", "idem", 200, JSON, "idempotency-key: " KEY "\n", "{}", DONE },
    { "half a payment, and HTTP calls it whole", "idem", 201, JSON, NEW, "{\"id\":\"1",
      UNSURE_ASK },
    { "no payment at all", "idem", 201, JSON, NEW, "", UNSURE_ASK },
    { "a payment and more", "idem", 201, JSON, NEW, "{\"id\":\"1\"}}", UNSURE_ASK },
    { "a word instead of a payment", "idem", 200, "text/plain", OLD, "ok", UNSURE_ASK },
    { "half a decline", "idem", 402, PROBLEM, NEW, "{\"type\":\"urn:idem:problem:decl",
      UNSURE_ASK },
    { "half of being limited", "idem", 429, PROBLEM, "", "{\"type\":\"urn:id", AWAY_AGAIN },
    { "half of having failed", "idem", 503, PROBLEM, "", "{\"type\":\"urn:id", UNSURE_SAME },
    { "not final in time", "idem", 202, JSON, NEW "Location: /v1/operations/1\nRetry-After: 1\n",
      "{\"state\":\"unknown\"}", RUN_ASK },
    { "the provider declined", "idem", 402, PROBLEM, NEW, OURS("declined", "none", "new-key"),
      REFUSED },
    { "in flight; the marker is no stored answer", "idem", 409, PROBLEM, OLD "Retry-After: 1\n",
      OURS("in-progress", "unknown", "same-key"), RUN_AGAIN },
    { "in flight, and something took the body", "idem", 409, "", OLD, "", UNSURE_SAME },
    { "answered long ago", "idem", 410, PROBLEM, OLD, OURS("answer-expired", "done", "query"),
      DONE },
    { "answered long ago, and something took the body", "idem", 410, "", OLD, "", UNSURE_ASK },
    { "a 4xx with the marker and a body that is none", "idem", 404, "", OLD, "x", AWAY_STOP },
    { "refused long ago", "idem", 410, PROBLEM, OLD, OURS("answer-expired", "none", "query"),
      REFUSED },
    { "the store did not answer", "idem", 503, PROBLEM, IDEM_ECHO,
      OURS("outcome-unknown", "unknown", "same-key"), UNSURE_SAME },
    { "the same, rewritten to 400 on the way", "idem", 400, PROBLEM, IDEM_ECHO,
      OURS("outcome-unknown", "unknown", "same-key"), UNSURE_SAME },
    { "overloaded", "idem", 503, PROBLEM, "Retry-After: 1\n",
      OURS("unavailable", "unknown", "same-key"), AWAY_AGAIN },
    { "released", "idem", 503, PROBLEM, OLD, OURS("not-executed", "none", "same-key"), AWAY_AGAIN },
    { "another request has the key", "idem", 422, PROBLEM, IDEM_ECHO,
      OURS("key-reused", "unknown", "never"), UNSURE },
    { "the clock is wrong", "idem", 412, PROBLEM, IDEM_ECHO, OURS("too-old", "unknown", "query"),
      AWAY_ASK },
    { "bytes that cannot be used, perhaps of this copy only", "idem", 400, PROBLEM, IDEM_ECHO,
      OURS("body-invalid", "none", "never"), AWAY_STOP },
    { "the body was changed", "idem", 400, PROBLEM, IDEM_ECHO,
      OURS("digest-mismatch", "unknown", "same-key"), AWAY_AGAIN },
    { "a wrong credential", "idem", 401, PROBLEM, "WWW-Authenticate: Bearer\n",
      OURS("unauthenticated", "unknown", "never"), AWAY_STOP },
    { "an effect of a later version", "idem", 409, PROBLEM, IDEM_ECHO,
      OURS("half-done", "partial", "new-key"), UNSURE_ASK },
    { "an advice of a later version", "idem", 409, PROBLEM, IDEM_ECHO,
      OURS("half-done", "unknown", "same-key-once"), UNSURE_ASK },
    { "advice that contradicts itself", "idem", 409, PROBLEM, IDEM_ECHO,
      OURS("declined", "unknown", "new-key"), UNSURE_ASK },
    { "a repeated member", "idem", 402, PROBLEM, IDEM_ECHO,
      "{\"type\":\"urn:idem:problem:declined\",\"effect\":\"none\",\"effect\":\"done\","
      "\"retry\":\"new-key\"}",
      UNSURE_ASK },
    { "a decline that does not name the key", "idem", 402, PROBLEM, "Idempotent-Replayed: true\n",
      OURS("declined", "none", "new-key"), UNSURE_ASK },
    { "something in the way, and no key named", "idem", 409, PROBLEM, "",
      OURS("order-exists", "none", "query"), UNSURE_ASK },
    { "answered long ago, and no key named", "idem", 410, PROBLEM, "",
      OURS("answer-expired", "done", "query"), UNSURE_ASK },
    { "refused long ago, and no key named", "idem", 410, PROBLEM, "",
      OURS("answer-expired", "none", "query"), UNSURE_ASK },
    { "somebody else's old payment", "idem", 410, PROBLEM, "Idempotency-Key: \"other\"\n",
      OURS("answer-expired", "done", "query"), UNSURE_ASK },
    { "not executed, and no key named", "idem", 503, PROBLEM, "",
      OURS("not-executed", "none", "same-key"), AWAY_AGAIN },
    { "somebody else's decline", "idem", 402, PROBLEM, "Idempotency-Key: \"other\"\n",
      OURS("declined", "none", "new-key"), UNSURE_ASK },
    { "somebody else's payment", "idem", 201, JSON, "Idempotency-Key: \"other\"\n", "{}",
      UNSURE_ASK },
    { "this key and another one", "idem", 201, JSON, IDEM_ECHO "Idempotency-Key: \"other\"\n", "{}",
      UNSURE_ASK },
    { "captive portal", "idem", 200, HTML, "Server: portal\n", NGINX("Welcome to WiFi"),
      UNSURE_ASK },
    { "another service at the address", "idem", 200, JSON, "", "{\"ok\":true}", UNSURE_ASK },
    { "the same with 202", "idem", 202, JSON, "Location: /job/1\n", "{}", UNSURE_ASK },
    { "sign-in redirect", "idem", 302, HTML, "Location: https://sso.example/\n", "", UNSURE_ASK },
    { "to https", "idem", 301, HTML, "Location: https://a.example/v1/payments\n", "", AWAY_STOP },
    { "308", "idem", 308, "", "Location: /v2/payments\n", "", AWAY_STOP },
    /* nginx and other things in between */
    { "bad gateway", "idem", 502, HTML, "Server: nginx\n", NGINX("502 Bad Gateway"), UNSURE_SAME },
    { "no upstream", "stripe", 503, HTML, "Server: nginx\n", NGINX("503"), UNSURE_SAME },
    { "gateway timeout", "paypal", 504, HTML, "", NGINX("504 Gateway Time-out"), UNSURE_SAME },
    { "too large for nginx", "ietf", 413, HTML, "", NGINX("413"), AWAY_STOP },
    { "a request timeout", "ietf", 408, HTML, "", NGINX("408"), UNSURE_SAME },
    { "limited by nginx", "adyen", 429, HTML, "Retry-After: 5\n", NGINX("429"), AWAY_AGAIN },
    { "the client hung up, says a gateway", "ietf", 499, "", "", "", UNSURE_SAME },
    { "a filter refused request or answer", "stripe", 403, HTML, "", NGINX("403 Forbidden"),
      UNSURE_ASK },
    { "the same with 406", "paypal", 406, HTML, "", NGINX("406 Not Acceptable"), UNSURE_ASK },
    { "a web page instead of JSON", "stripe", 200, "TEXT/HTML", "", NGINX("Maintenance"),
      UNSURE_ASK },
    { "sign in to the network", "adyen", 511, HTML, "", NGINX("511"), UNSURE_SAME },
    /* Stripe */
    { "a charge", "stripe", 200, JSON, "Idempotency-Key: " KEY "\nOriginal-Request: req_1\n",
      "{\"id\":\"ch_1\",\"status\":\"succeeded\"}", DONE },
    { "half a charge", "stripe", 200, "", "", "{\"id\":\"ch_1\",\"sta", UNSURE_ASK },
    { "a card declined", "stripe", 402, JSON, "Idempotency-Key: " KEY "\n",
      STRIPE_ERROR("card_error", "card_declined"), REFUSED },
    { "a refusal shown again", "stripe", 400, JSON, "Idempotent-Replayed: true\n",
      STRIPE_ERROR("invalid_request_error", "charge_already_captured"), REFUSED },
    { "not stored: a validation", "stripe", 400, JSON, "",
      STRIPE_ERROR("invalid_request_error", "parameter_missing"), AWAY_STOP },
    { "the key with other parameters", "stripe", 400, JSON, "", STRIPE_MISMATCH, UNSURE },
    { "the same with a code", "stripe", 400, JSON, "Idempotent-Replayed: true\n",
      STRIPE_ERROR("idempotency_error", "some_code"), UNSURE },
    { "in flight", "stripe", 409, JSON, "Stripe-Should-Retry: true\n",
      STRIPE_ERROR("invalid_request_error", "idempotency_key_in_use"), RUN_AGAIN },
    { "limited", "stripe", 429, JSON, "Stripe-Should-Retry: true\n",
      STRIPE_ERROR("invalid_request_error", "rate_limit"), AWAY_AGAIN },
    { "limited, and not to be repeated", "stripe", 429, JSON, "Stripe-Should-Retry: false\n",
      STRIPE_ERROR("invalid_request_error", "lock_timeout"), AWAY_STOP },
    { "a wrong credential", "stripe", 401, JSON, "",
      "{\"error\":{\"message\":\"Invalid API Key\",\"type\":\"invalid_request_error\"}}",
      AWAY_STOP },
    { "a credential that may not", "stripe", 403, JSON, "",
      "{\"error\":{\"type\":\"invalid_request_error\"}}", AWAY_STOP },
    { "a failure", "stripe", 500, JSON, "", STRIPE_ERROR("api_error", "x"), UNSURE_SAME },
    { "a failure, not to be repeated", "stripe", 500, JSON, "stripe-should-retry: false\n",
      STRIPE_ERROR("api_error", "x"), UNSURE_ASK },
    { "a stored failure", "stripe", 500, JSON, "Idempotent-Replayed: true\n",
      STRIPE_ERROR("api_error", "x"), UNSURE_ASK },
    { "a decline that is to be repeated", "stripe", 402, JSON, "Stripe-Should-Retry: true\n",
      STRIPE_ERROR("card_error", "processing_error"), UNSURE_SAME },
    { "our gateway in front of Stripe", "stripe", 402, PROBLEM, "",
      OURS("declined", "none", "new-key"), REFUSED },
    /* Adyen */
    { "authorised", "adyen", 200, JSON, "idempotency-key: " KEY "\n",
      "{\"resultCode\":\"Authorised\"}", DONE },
    { "refused, which Adyen says with 200", "adyen", 200, JSON, "",
      "{\"resultCode\":\"Refused\",\"refusalReasonCode\":\"2\"}", DONE },
    { "in flight", "adyen", 422, JSON, "transient-error: true\n",
      ADYEN_ERROR("422", "704", "validation"), RUN_AGAIN },
    { "in flight, the newer way", "adyen", 409, JSON, "transient-error: true\n",
      ADYEN_ERROR("409", "704", "validation"), RUN_AGAIN },
    { "processed already", "adyen", 422, JSON, "", ADYEN_ERROR("422", "704", "validation"),
      UNSURE_ASK },
    { "the key store is down", "adyen", 503, JSON, "transient-error: true\n",
      ADYEN_ERROR("503", "703", "internal"), AWAY_AGAIN },
    { "its code as a number", "adyen", 503, JSON, "", "{\"status\":503,\"errorCode\":703}",
      AWAY_AGAIN },
    { "not valid", "adyen", 422, JSON, "", ADYEN_ERROR("422", "130", "validation"), AWAY_STOP },
    { "not valid, but transient", "adyen", 422, JSON, "transient-error: true\n",
      ADYEN_ERROR("422", "905", "configuration"), UNSURE_ASK },
    { "a failure that is not transient", "adyen", 500, JSON, "transient-error: false\n",
      ADYEN_ERROR("500", "905", "internal"), UNSURE_ASK },
    /* PayPal */
    { "captured", "paypal", 201, JSON, "Paypal-Debug-Id: f1\n", "{\"status\":\"COMPLETED\"}",
      DONE },
    { "declined", "paypal", 422, JSON, "",
      PAYPAL_ERROR("UNPROCESSABLE_ENTITY", "INSTRUMENT_DECLINED"), AWAY_STOP },
    { "in flight", "paypal", 409, JSON, "",
      PAYPAL_ERROR("RESOURCE_CONFLICT", "PREVIOUS_REQUEST_IN_PROGRESS"), RUN_AGAIN },
    { "the id was used", "paypal", 400, JSON, "",
      "{\"name\":\"DUPLICATE_REQUEST_ID\",\"message\":\"Words.\"}", UNSURE_ASK },
    { "the id was used before", "paypal", 422, JSON, "",
      PAYPAL_ERROR("UNPROCESSABLE_ENTITY", "PAYPAL_REQUEST_ID_PREVIOUSLY_USED"), UNSURE_ASK },
    { "the id was used, and the answer was cut", "paypal", 422, JSON, "",
      "{\"name\":\"DUPLICATE_REQUEST_ID\",\"mess", UNSURE_ASK },
    { "a failure", "paypal", 500, JSON, "", "{\"name\":\"INTERNAL_SERVER_ERROR\"}", UNSURE_SAME },
    /* Others that follow the draft */
    { "made", "ietf", 201, JSON, "", "{}", DONE },
    { "made, and the answer was cut", "ietf", 201, JSON, "", "{\"id\":", UNSURE_ASK },
    { "made, in another JSON type, and cut", "ietf", 200, "Application/Vnd.Api+JSON; v=1", "", "{",
      UNSURE_ASK },
    { "made, in a type that says nothing", "ietf", 200, "text/plain", "", "{\"id\":", DONE },
    { "made, and nothing to say", "ietf", 200, JSON, "", "", DONE },
    { "made, by a server with old letters", "ietf", 200, JSON, "", "{\"name\":\"M\xFCller\"}",
      DONE },
    { "no content", "ietf", 204, "", "", "", DONE },
    { "several results", "ietf", 207, JSON, "", "{}", UNSURE_ASK },
    { "in flight", "ietf", 409, PROBLEM, "Link: </d>; rel=\"describedby\"\n",
      "{\"title\":\"A request is outstanding for this Idempotency-Key\"}", RUN_AGAIN },
    { "the key with another payload", "ietf", 422, PROBLEM, "",
      "{\"title\":\"Idempotency-Key is already used\"}", AWAY_STOP },
    { "without a key", "ietf", 400, PROBLEM, "", "{\"title\":\"Idempotency-Key is missing\"}",
      AWAY_STOP },
    { "a type that looks like one of ours", "ietf", 402, PROBLEM, "",
      "{\"type\":\"https://x.example/urn:idem:problem:declined\",\"effect\":\"none\","
      "\"retry\":\"new-key\"}",
      AWAY_STOP },
    { "in early data", "ietf", 425, "", "", "", AWAY_AGAIN },
    { "first sent too long ago", "ietf", 412, JSON, "", "{}", UNSURE_ASK },
#include "unit/client/answers_bytes.def"
};

#endif /* IDEM_TEST_CLIENT_ANSWERS_H */
