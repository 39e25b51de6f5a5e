/*
 * The port that speaks HTTP.
 *
 * A call travels in a carrier: the HTTP call with the memory for its request, from a pool that is
 * made at create. What comes back is read once, by one rule:
 *
 *     NOT_SENT   NOT_EXECUTED for a send; for a question or a close it is silence
 *     UNKNOWN    silence
 *     ANSWERED   what the adapter reads in it
 *
 * Evidence names the entry that the call went to, by its rules. An effect goes only to the entry
 * with its name, account and region: after a change of configuration a stored request must not
 * reach another account, where nobody knows its id.
 *
 * An adapter with steps may need several requests for one call. They leave one after the other from
 * the same carrier, each a call of its own to the client: one send guard each, and none after the
 * call's not_after_us. What holds in between, and so at every end, is the adapter's word (`so_far`
 * in adapter.h); the rule above is the special case of one request. A cancelled call takes no
 * further step.
 *
 * The provider's text is bounded here, for all adapters. Code and message are for people and are
 * cut. Id, currency and reference are compared or used again: cut they would be other values, so an
 * answer in which one is too long is UNKNOWN.
 *
 * Listings have one place of their own, with room for a longer answer: reading one page at a time
 * is fast enough for what is done once after a restore, and bounds the memory. A page that was not
 * answered completely, or not as the adapter can read it, must be asked for again.
 */
#include "provider/http_port.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/bug.h"
#include "base/currency.h"
#include "provider/adapter.h"
#include "provider/wire.h"

#define CONNECT_TIMEOUT_MAX INT64_C(5000000) /* Microseconds; a part of the request's timeout. */
#define REQUEST_TEXT_MAX    4096             /* URL and header lines with the credential. */
#define ANSWER_TEXT_MAX     IDEM_HTTP_ANSWER_BODY_MAX /* Text that an adapter unescapes. */
#define FOREIGN_ID_MAX      64                        /* An id as a provider says it. */
#define PAGE_BODY_MAX       ((size_t)64 * 1024)       /* As docs/bridge.md says. */
#define KEPT_MAX            4096 /* Text between two steps; longer is UNKNOWN. */

static_assert(IDEM_CALL_MEMORY_MAX >= IDEM_ENTRY_MAX + IDEM_ACCOUNT_MAX + IDEM_REGION_MAX +
                                          FOREIGN_ID_MAX + IDEM_CURRENCY_LEN + IDEM_REFERENCE_MAX +
                                          IDEM_CODE_MAX + IDEM_MESSAGE_MAX,
              "the longest evidence fits");

struct carrier {
    struct idem_list_node node; /* On `idle`. */
    struct idem_call *call;
    const struct idem_provider_entry *entry;
    struct idem_http_call http;
    struct idem_buf request;
    char request_memory[REQUEST_TEXT_MAX];

    /* For an adapter with steps. */
    struct idem_wire_course course;
    unsigned requests; /* Of this call, so far. */
    bool harmless;     /* The one that is under way. */
    bool cancelled;
    char kept_memory[2][KEPT_MAX]; /* Text of course.so_far, in turn. */
    char head_memory[IDEM_HTTP_HEADERS_SIZE];
};

/* The page that is being asked for, if any. */
struct lister {
    struct idem_listing *listing; /* NULL: none. */
    const struct idem_provider_entry *entry;
    struct idem_http_call http;
    char request_memory[REQUEST_TEXT_MAX];
    char page_memory[PAGE_BODY_MAX];
};

struct http_port {
    struct idem_port port;
    struct idem_http_client *client;
    const struct idem_provider_entry *entries;
    size_t entry_count;
    struct carrier *carriers;
    size_t carrier_count;
    struct idem_list idle;
    struct idem_list done; /* Calls and listings that have ended and wait to be reaped. */
    struct idem_list listed;
    struct lister lister;
    char answer_memory[ANSWER_TEXT_MAX]; /* For one decode at a time. */
};

static struct http_port *http_port_from(struct idem_port *port)
{
    return IDEM_CONTAINER_OF(port, struct http_port, port);
}

static const struct idem_provider_entry *entry_find(const struct http_port *http,
                                                    const struct idem_effect *effect)
{
    for (size_t i = 0; i < http->entry_count; i++) {
        const struct idem_provider_rules *rules = http->entries[i].rules;
        if (idem_str_equal(rules->entry, effect->entry) &&
            idem_str_equal(rules->account, effect->account) &&
            idem_str_equal(rules->region, effect->region)) {
            return &http->entries[i];
        }
    }
    return NULL;
}

/*
 * Completes what the adapter has written into `buf` and `wire` to a call that can be submitted.
 * False: the text does not fit, which an entry with an absurd URL or credential can cause.
 */
static bool http_fill(struct idem_http_call *http,
                      const struct idem_provider_entry *entry,
                      const struct idem_wire_request *wire,
                      struct idem_buf *buf)
{
    size_t url_at = buf->len;
    int64_t timeout_us = entry->rules->request_timeout_us;

    IDEM_ASSERT(wire->header_count <= IDEM_ARRAY_COUNT(wire->headers));
    idem_buf_add(buf, idem_str_from(entry->base_url));
    idem_buf_add(buf, wire->path);
    idem_buf_add_char(buf, '\0');
    if (buf->full) {
        return false;
    }
    http->method = wire->method;
    http->url = buf->data + url_at;
    http->header_count = wire->header_count;
    for (size_t i = 0; i < wire->header_count; i++) {
        http->headers[i] = wire->headers[i];
    }
    http->body = wire->body;
    http->timeout_us = timeout_us;
    http->connect_timeout_us = timeout_us < CONNECT_TIMEOUT_MAX ? timeout_us : CONNECT_TIMEOUT_MAX;
    return true;
}

static bool trace_add(struct carrier *carrier)
{
    struct idem_http_call *http = &carrier->http;
    struct idem_buf *buf = &carrier->request;
    size_t start = buf->len;

    if (carrier->call->trace.len == 0) {
        return true;
    }
    IDEM_ASSERT(http->header_count < IDEM_ARRAY_COUNT(http->headers));
    idem_buf_add(buf, IDEM_STR("traceparent: "));
    idem_buf_add(buf, carrier->call->trace);
    http->headers[http->header_count] = idem_str_slice(idem_buf_str(buf), start, SIZE_MAX);
    http->header_count += 1;
    return !buf->full;
}

enum built {
    BUILT_REQUEST,
    BUILT_NOTHING, /* The adapter needs none: course.so_far is the end. */
    BUILT_TOO_LONG
};

static enum built request_build(struct carrier *carrier)
{
    const struct idem_provider_entry *entry = carrier->entry;
    const struct idem_adapter *adapter = entry->adapter;
    const struct idem_call *call = carrier->call;
    struct idem_str credential = idem_str_from(entry->credential);
    struct idem_buf *buf = &carrier->request;
    struct idem_wire_request wire = { .header_count = 0 };

    idem_buf_init(buf, carrier->request_memory, sizeof(carrier->request_memory));
    if (adapter->steps == NULL) {
        adapter->request(call->kind, &call->effect, credential, buf, &wire);
    } else if (!adapter->steps->request(&carrier->course, credential, buf, &wire)) {
        return BUILT_NOTHING;
    }
    carrier->harmless = adapter->steps != NULL && wire.harmless;
    carrier->http.head_room = adapter->steps == NULL ? NULL : carrier->head_memory;
    carrier->http.head_room_size = sizeof(carrier->head_memory);
    carrier->http.not_after_us = call->not_after_us;
    bool fits = http_fill(&carrier->http, entry, &wire, buf) && trace_add(carrier);
    return fits ? BUILT_REQUEST : BUILT_TOO_LONG;
}

static bool text_fits(const struct idem_evidence *read)
{
    return read->effect_id.len <= FOREIGN_ID_MAX && read->currency.len <= IDEM_CURRENCY_LEN &&
           read->reference.len <= IDEM_REFERENCE_MAX;
}

/* Nothing was learned, but what the provider wishes. */
static void silence_keep(struct idem_evidence *read)
{
    *read = (struct idem_evidence){
        .outcome = IDEM_OUTCOME_UNKNOWN,
        .amount_minor = -1,
        .retry_after_us = read->retry_after_us,
    };
}

/* What an adapter has read must be one of its words, and fit; else it is silence. */
static bool evidence_fits(struct idem_evidence *read, const struct idem_buf *buf)
{
    IDEM_ASSERT(read->outcome > IDEM_OUTCOME_NONE);
    IDEM_ASSERT(read->outcome < IDEM_OUTCOME_COUNT);
    if (buf->full || !text_fits(read)) {
        silence_keep(read);
        return false;
    }
    return true;
}

/* What there is before anything has been sent: for a send, proof. */
static struct idem_evidence evidence_first(enum idem_call_kind kind)
{
    return (struct idem_evidence){
        .outcome = kind == IDEM_CALL_SEND ? IDEM_OUTCOME_NOT_EXECUTED : IDEM_OUTCOME_UNKNOWN,
        .amount_minor = -1,
    };
}

static struct idem_wire_answer answer_of(const struct idem_http_call *http)
{
    return (struct idem_wire_answer){
        .status = http->status,
        .content_type = http->content_type,
        .body = http->answer,
        .head = http->head,
        .retry_after_us = http->retry_after_us,
    };
}

/* Reads a finished call of one request. Text of the result may lie in the carrier or the port. */
static struct idem_evidence evidence_read(struct http_port *http, const struct carrier *carrier)
{
    const struct idem_call *call = carrier->call;
    const struct idem_http_call *answer = &carrier->http;
    struct idem_evidence read = evidence_first(call->kind);

    IDEM_ASSERT(answer->verdict > IDEM_HTTP_NONE);
    IDEM_ASSERT(answer->verdict < IDEM_HTTP_VERDICT_COUNT);
    if (answer->verdict == IDEM_HTTP_UNKNOWN) {
        read.outcome = IDEM_OUTCOME_UNKNOWN;
    }
    if (answer->verdict == IDEM_HTTP_ANSWERED) {
        const struct idem_wire_answer wire = answer_of(answer);
        struct idem_buf buf;
        idem_buf_init(&buf, http->answer_memory, sizeof(http->answer_memory));
        carrier->entry->adapter->decode(call->kind, &call->effect, &wire, &buf, &read);
        read.retry_after_us = answer->retry_after_us;
        (void)evidence_fits(&read, &buf); /* If not, it is silence now. */
    }
    return read;
}

/* Fills what is the provider's to say; token, send number and times stay the submitter's. */
static void evidence_fill(struct idem_call *call,
                          const struct idem_provider_rules *rules,
                          const struct idem_evidence *read)
{
    struct idem_evidence *evidence = &call->evidence;
    struct idem_buf buf;

    idem_buf_init(&buf, call->memory, sizeof(call->memory));
    evidence->source = idem_call_source(call->kind);
    evidence->outcome = read->outcome;
    evidence->entry = idem_buf_keep(&buf, rules->entry);
    evidence->account = idem_buf_keep(&buf, rules->account);
    evidence->region = idem_buf_keep(&buf, rules->region);
    evidence->effect_id = idem_buf_keep(&buf, read->effect_id);
    evidence->amount_minor = read->amount_minor;
    evidence->currency = idem_buf_keep(&buf, read->currency);
    evidence->reference = idem_buf_keep(&buf, read->reference);
    evidence->code = idem_buf_keep(&buf, idem_wire_text_cut(read->code, IDEM_CODE_MAX));
    evidence->message = idem_buf_keep(&buf, idem_wire_text_cut(read->message, IDEM_MESSAGE_MAX));
    evidence->retry_after_us = read->retry_after_us;
    IDEM_ASSERT(!buf.full);
}

static void call_end(struct http_port *http,
                     struct carrier *carrier,
                     const struct idem_evidence *read)
{
    struct idem_call *call = carrier->call;

    evidence_fill(call, carrier->entry->rules, read);
    explicit_bzero(carrier->request_memory, carrier->request.len); /* The credential is in it. */
    call->carrier = NULL;
    carrier->call = NULL;
    idem_list_push_front(&http->idle, &carrier->node);
    idem_list_push(&http->done, &call->node);
}

/*
 * Keeps the text of what is known so far. It may lie in the answer, which the next request writes
 * over, or in what was kept before, so two places take turns.
 */
static void course_keep(struct carrier *carrier)
{
    struct idem_evidence *so_far = &carrier->course.so_far;
    struct idem_buf buf;

    idem_buf_init(&buf, carrier->kept_memory[carrier->requests % 2], KEPT_MAX);
    so_far->effect_id = idem_buf_keep(&buf, so_far->effect_id);
    so_far->currency = idem_buf_keep(&buf, so_far->currency);
    so_far->reference = idem_buf_keep(&buf, so_far->reference);
    so_far->code = idem_buf_keep(&buf, idem_wire_text_cut(so_far->code, IDEM_CODE_MAX));
    so_far->message = idem_buf_keep(&buf, idem_wire_text_cut(so_far->message, IDEM_MESSAGE_MAX));
    IDEM_ASSERT(!buf.full); /* evidence_fits() has looked at the others. */
}

/* Takes in how a request of several ended. True: another follows. */
static bool course_read(struct http_port *http, struct carrier *carrier)
{
    struct idem_wire_course *course = &carrier->course;
    const struct idem_http_call *answer = &carrier->http;
    struct idem_buf buf;

    IDEM_ASSERT(answer->verdict > IDEM_HTTP_NONE);
    IDEM_ASSERT(answer->verdict < IDEM_HTTP_VERDICT_COUNT);
    if (answer->verdict == IDEM_HTTP_UNKNOWN && !carrier->harmless) {
        course->so_far.outcome = IDEM_OUTCOME_UNKNOWN;
    }
    if (answer->verdict != IDEM_HTTP_ANSWERED) {
        return false;
    }
    const struct idem_wire_answer wire = answer_of(answer);
    idem_buf_init(&buf, http->answer_memory, sizeof(http->answer_memory));
    bool more = carrier->entry->adapter->steps->decode(course, &wire, &buf);
    course->so_far.retry_after_us = answer->retry_after_us;
    bool fits = evidence_fits(&course->so_far, &buf);
    course_keep(carrier);
    return more && fits && !carrier->cancelled && carrier->requests < IDEM_WIRE_STEPS_MAX;
}

/* Sends the request of the course's step. False: it has not left and never will. */
static bool course_send(struct http_port *http, struct carrier *carrier)
{
    if (request_build(carrier) != BUILT_REQUEST ||
        idem_http_client_submit(http->client, &carrier->http) != IDEM_OK) {
        return false;
    }
    carrier->requests += 1;
    return true;
}

static void call_finish(struct http_port *http, struct carrier *carrier)
{
    IDEM_ASSERT(carrier->call->carrier == carrier);
    if (carrier->entry->adapter->steps == NULL) {
        struct idem_evidence read = evidence_read(http, carrier);
        call_end(http, carrier, &read);
        return;
    }
    if (!course_read(http, carrier) || !course_send(http, carrier)) {
        call_end(http, carrier, &carrier->course.so_far);
    }
}

static void carrier_begin(struct carrier *carrier,
                          struct idem_call *call,
                          const struct idem_provider_entry *entry)
{
    carrier->call = call;
    carrier->entry = entry;
    carrier->requests = 0;
    carrier->cancelled = false;
    carrier->course = (struct idem_wire_course){
        .kind = call->kind,
        .effect = &call->effect,
        .so_far = evidence_first(call->kind),
    };
}

static enum idem_err port_submit(struct idem_port *port, struct idem_call *call)
{
    struct http_port *http = http_port_from(port);
    const struct idem_provider_entry *entry = entry_find(http, &call->effect);

    if (entry == NULL) {
        return IDEM_E_INVALID;
    }
    struct idem_list_node *node = idem_list_pop(&http->idle);
    if (node == NULL) {
        return IDEM_E_LIMIT;
    }
    struct carrier *carrier = IDEM_CONTAINER_OF(node, struct carrier, node);
    carrier_begin(carrier, call, entry);

    enum built built = request_build(carrier);
    if (built == BUILT_NOTHING) { /* Known without asking. */
        call_end(http, carrier, &carrier->course.so_far);
        return IDEM_OK;
    }
    enum idem_err err = built == BUILT_REQUEST ? IDEM_OK : IDEM_E_INVALID;
    if (err == IDEM_OK) {
        err = idem_http_client_submit(http->client, &carrier->http);
    }
    if (err != IDEM_OK) {
        carrier->call = NULL;
        idem_list_push_front(&http->idle, &carrier->node);
        return err;
    }
    carrier->requests = 1;
    call->carrier = carrier;
    return IDEM_OK;
}

/* Listings. */

static const struct idem_provider_entry *lister_find(const struct http_port *http,
                                                     struct idem_str name)
{
    for (size_t i = 0; i < http->entry_count; i++) {
        const struct idem_provider_entry *entry = &http->entries[i];
        if (idem_str_equal(entry->rules->entry, name) &&
            (entry->rules->listing || entry->rules->comparing) &&
            entry->adapter->list_request != NULL) {
            return entry;
        }
    }
    return NULL;
}

/* What it holds while nothing usable has come. */
static void listing_reset(struct idem_listing *listing)
{
    listing->answered = false;
    listing->count = 0;
    listing->more = false;
    idem_buf_init(&listing->kept, listing->memory, sizeof(listing->memory));
}

static enum idem_err port_list(struct idem_port *port, struct idem_listing *listing)
{
    struct http_port *http = http_port_from(port);
    struct lister *lister = &http->lister;
    const struct idem_provider_entry *entry = lister_find(http, listing->entry);
    struct idem_wire_request wire = { .header_count = 0 };
    struct idem_buf buf;

    if (entry == NULL || lister->listing != NULL) {
        return IDEM_E_LIMIT;
    }
    idem_buf_init(&buf, lister->request_memory, sizeof(lister->request_memory));
    entry->adapter->list_request(listing, idem_str_from(entry->credential), &buf, &wire);
    if (!http_fill(&lister->http, entry, &wire, &buf)) {
        return IDEM_E_INVALID;
    }
    lister->http.not_after_us = INT64_MAX; /* A question may leave at any time. */
    lister->http.answer_room = lister->page_memory;
    lister->http.answer_room_size = sizeof(lister->page_memory);
    enum idem_err err = idem_http_client_submit(http->client, &lister->http);
    if (err != IDEM_OK) {
        return err;
    }
    listing_reset(listing);
    listing->carrier = lister;
    lister->listing = listing;
    lister->entry = entry;
    return IDEM_OK;
}

static void listing_finish(struct http_port *http)
{
    struct lister *lister = &http->lister;
    struct idem_listing *listing = lister->listing;
    const struct idem_http_call *answer = &lister->http;

    IDEM_ASSERT(listing != NULL);
    IDEM_ASSERT(listing->carrier == lister);
    if (answer->verdict == IDEM_HTTP_ANSWERED) {
        const struct idem_wire_answer wire = answer_of(answer);
        listing->answered =
            lister->entry->adapter->list_decode(&wire, listing) && !listing->kept.full;
    }
    if (!listing->answered) {
        listing_reset(listing);
    }
    IDEM_ASSERT(listing->count <= IDEM_LISTING_MAX);
    listing->carrier = NULL;
    lister->listing = NULL;
    idem_list_push(&http->listed, &listing->node);
}

/* The client hands over both kinds together; either reap takes all and keeps the other's. */
static void collect(struct http_port *http)
{
    struct idem_list ended = { .count = 0 };
    struct idem_list_node *node;

    idem_http_client_reap(http->client, &ended);
    while ((node = idem_list_pop(&ended)) != NULL) {
        struct idem_http_call *answer = IDEM_CONTAINER_OF(node, struct idem_http_call, node);
        if (answer == &http->lister.http) {
            listing_finish(http);
            continue;
        }
        call_finish(http, IDEM_CONTAINER_OF(answer, struct carrier, http));
    }
}

static void port_reap(struct idem_port *port, struct idem_list *ret_done)
{
    struct http_port *http = http_port_from(port);

    collect(http);
    idem_list_join(ret_done, &http->done);
}

static void port_reap_listings(struct idem_port *port, struct idem_list *ret_done)
{
    struct http_port *http = http_port_from(port);

    collect(http);
    idem_list_join(ret_done, &http->listed);
}

static void port_cancel(struct idem_port *port, struct idem_call *call)
{
    struct carrier *carrier = call->carrier;

    if (carrier == NULL) {
        return; /* It has ended, and waits to be reaped. */
    }
    IDEM_ASSERT(carrier->call == call);
    carrier->cancelled = true;
    idem_http_client_cancel(http_port_from(port)->client, &carrier->http);
}

static void port_cancel_listing(struct idem_port *port, struct idem_listing *listing)
{
    struct http_port *http = http_port_from(port);
    if (http->lister.listing == listing) { /* Otherwise it has ended, and waits to be reaped. */
        idem_http_client_cancel(http->client, &http->lister.http);
    }
}

static void port_destroy(struct idem_port *port)
{
    struct http_port *http = http_port_from(port);

    IDEM_ASSERT(http->idle.count == http->carrier_count);
    IDEM_ASSERT(http->done.count == 0);
    IDEM_ASSERT(http->listed.count == 0);
    IDEM_ASSERT(http->lister.listing == NULL);
    free(http->carriers);
    free(http);
}

static const struct idem_port_ops http_port_ops = {
    .submit = port_submit,
    .reap = port_reap,
    .cancel = port_cancel,
    .list = port_list,
    .reap_listings = port_reap_listings,
    .cancel_listing = port_cancel_listing,
    .destroy = port_destroy,
};

static void entry_check(const struct idem_provider_entry *entry)
{
    IDEM_ASSERT(entry->adapter != NULL);
    IDEM_ASSERT(entry->base_url != NULL);
    IDEM_ASSERT((entry->adapter->steps == NULL) == (entry->adapter->request != NULL));
    IDEM_ASSERT((entry->adapter->steps == NULL) == (entry->adapter->decode != NULL));
    IDEM_ASSERT(entry->rules->request_timeout_us > 0);
    IDEM_ASSERT(entry->rules->entry.len <= IDEM_ENTRY_MAX);
    IDEM_ASSERT(entry->rules->account.len <= IDEM_ACCOUNT_MAX);
    IDEM_ASSERT(entry->rules->region.len <= IDEM_REGION_MAX);
    IDEM_ASSERT((entry->adapter->list_request == NULL) == (entry->adapter->list_decode == NULL));
}

enum idem_err idem_http_port_create(struct idem_http_client *client,
                                    const struct idem_provider_entry *entries,
                                    size_t entry_count,
                                    size_t calls_max,
                                    struct idem_port **ret_port)
{
    IDEM_ASSERT(calls_max > 0);
    for (size_t i = 0; i < entry_count; i++) {
        entry_check(&entries[i]);
    }

    struct http_port *http = calloc(1, sizeof(*http));
    if (http == NULL) {
        return IDEM_E_SYSTEM;
    }
    http->carriers = calloc(calls_max, sizeof(*http->carriers));
    if (http->carriers == NULL) {
        free(http);
        return IDEM_E_SYSTEM;
    }
    http->port.ops = &http_port_ops;
    http->client = client;
    http->entries = entries;
    http->entry_count = entry_count;
    http->carrier_count = calls_max;
    for (size_t i = 0; i < calls_max; i++) {
        idem_list_push(&http->idle, &http->carriers[i].node);
    }
    *ret_port = &http->port;
    return IDEM_OK;
}
