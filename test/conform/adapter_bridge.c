/* The bridge protocol, as docs/bridge.md has it. */
#include "conform/adapter.h"
#include "provider/bridge.h"

#include "base/attr.h"

#define MONEY          "\"amount\":\"100.00\",\"currency\":\"EUR\""
#define SAID(id, word) "{\"id\":\"" id "\",\"status\":\"" word "\"," MONEY ",\"reference\":\"p-1\"}"
#define DONE(id)       SAID(id, "succeeded")

#define ANY_CALL    (SEND | QUERY | CLOSE)
#define ANY_KIND    (PAYS | ACTS)
#define ONLY_CHARGE (1U << IDEM_EFFECT_KIND_CHARGE)

static const struct adapter_scene scenes[] = {
    { IDEM_CALL_SEND, IDEM_EFFECT_KIND_CHARGE, NULL, { DONE(CHARGE) }, IDEM_OUTCOME_SUCCESS },
    { IDEM_CALL_SEND, IDEM_EFFECT_KIND_AUTHORIZE, NULL, { DONE(AUTHORIZE) }, IDEM_OUTCOME_SUCCESS },
    { IDEM_CALL_SEND, IDEM_EFFECT_KIND_CAPTURE, NULL, { DONE(CAPTURE) }, IDEM_OUTCOME_SUCCESS },
    { IDEM_CALL_SEND, IDEM_EFFECT_KIND_CANCEL, NULL, { DONE(CANCEL) }, IDEM_OUTCOME_SUCCESS },
    { IDEM_CALL_SEND, IDEM_EFFECT_KIND_REFUND, NULL, { DONE(REFUND) }, IDEM_OUTCOME_SUCCESS },
    { IDEM_CALL_QUERY, IDEM_EFFECT_KIND_CHARGE, "p-1", { DONE(CHARGE) }, IDEM_OUTCOME_SUCCESS },
    { IDEM_CALL_QUERY, IDEM_EFFECT_KIND_REFUND, NULL, { DONE(REFUND) }, IDEM_OUTCOME_SUCCESS },
    { IDEM_CALL_CLOSE,
      IDEM_EFFECT_KIND_CHARGE,
      NULL,
      { SAID(CHARGE, "closed") },
      IDEM_OUTCOME_CLOSED_UNPAID },
};

static const struct adapter_belief beliefs[] = {
    { SAID(CHARGE, "declined"), ANY_CALL, ONLY_CHARGE, 1, { 200 }, IDEM_OUTCOME_REFUSED_FINAL },
    { SAID(CHARGE, "processing"), ANY_CALL, ONLY_CHARGE, 1, { 200 }, IDEM_OUTCOME_PROCESSING },
    { SAID(CHARGE, "invalid"), ANY_CALL, ONLY_CHARGE, 1, { 400, 422 }, IDEM_OUTCOME_REFUSED_FINAL },
    { "{\"status\":\"not_found\"}", QUERY, ANY_KIND, 1, { 404 }, IDEM_OUTCOME_NOT_FOUND },
    { "{\"status\":\"not_executed\"}",
      SEND,
      ANY_KIND,
      1,
      { 401, 403, 429, 503 },
      IDEM_OUTCOME_NOT_EXECUTED },
    { "{\"status\":\"declined\"}", 0, 0, 0, { 0 }, IDEM_OUTCOME_UNKNOWN }, /* Names no id. */
};

static const char *const heads[] = { "", NULL };

#define LISTED(id, kind, payment)                             \
    "{\"id\":\"" id "\",\"kind\":\"" kind "\"," payment MONEY \
    ",\"order_no\":\"o-1\","                                  \
    "\"happened\":\"2026-11-29T13:47:03.123456Z\"}"
#define BOTH      LISTED(CHARGE, "charge", "") "," LISTED(REFUND, "refund", OF_CHARGE)
#define OF_CHARGE "\"payment_id\":\"" CHARGE "\","

static const struct adapter_page pages[] = {
    { "", "{\"effects\":[" BOTH "],\"next\":\"2\"}", 2, true },
    { "2", "{\"effects\":[" BOTH "],\"next\":null}", 2, false },
    { "2", "{\"effects\":[],\"next\":null}", 0, false },
};

static const struct adapter_change spoils[] = {
    { "\"amount\":\"100.00\"", "\"amount\":\"100.0\"" },
    { "\"amount\":\"100.00\"", "\"amount\":100" },
    { "\"currency\":\"EUR\"", "\"currency\":\"eur\"" },
    { "\"kind\":\"", "\"kind\":\"x" },
    { "\"id\":", "\"status\":\"declined\",\"id\":" },
    { "2026-11-29T", "2026-11-31T" },
};

static const struct adapter_change event_spoils[] = {
    { "\"event\":\"ev-1\",", "" },
    { "\"id\":\"c", "\"id\":\"x" },
    { "\"outcome\":\"succeeded\"", "\"outcome\":\"succeeding\"" },
    { "\"amount\":\"100.00\",", "" },
    { "\"amount\":\"100.00\"", "\"amount\":10000" },
    { ",\"currency\":\"EUR\"", "" },
};

const struct adapter_fixture adapter_fixture = {
    .adapter = &idem_bridge_adapter,
    .payment_reference = "p-1",
    .scenes = scenes,
    .scene_count = IDEM_ARRAY_COUNT(scenes),
    .beliefs = beliefs,
    .belief_count = IDEM_ARRAY_COUNT(beliefs),
    .heads = heads,
    .amount = { "\"100.00\"", "\"10.00\"" },
    .currency = { "\"EUR\"", "\"USD\"" },
    .state = "\"status\":\"",
    .pages = pages,
    .page_count = IDEM_ARRAY_COUNT(pages),
    .spoils = spoils,
    .spoil_count = IDEM_ARRAY_COUNT(spoils),
    .event = "{\"event\":\"ev-1\",\"id\":\"" CHARGE "\",\"outcome\":\"succeeded\"," MONEY "}",
    .event_spoils = event_spoils,
    .event_spoil_count = IDEM_ARRAY_COUNT(event_spoils),
    .event_field = "Bridge-Signature",
    .tolerance_s = 300,
    .event_sign = adapter_sign_time_and_body,
};
