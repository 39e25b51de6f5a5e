/*
 * api.h - the payment API's edge: causes in, answers out, no policy.
 *
 * The server hands over complete exchanges; the edge checks what the bytes alone can say,
 * authenticates, names the intent (scope, effect id, fingerprint) and submits it. What the engine
 * gives back becomes an answer. Nothing here decides about money, and nothing here waits: an
 * exchange stays open until its request, read or task was reaped.
 *
 * Who may call is a table in memory: the configuration's credentials, which a reload replaces, and
 * the store's, which are read in pages from the first step on and changed by the admin API. Until
 * they are all read, and while there are more than fit, an unknown bearer gets 503, not 401.
 *
 * All memory is allocated at creation. When no place is free, the answer is `unavailable`.
 * A caller that has gone changes nothing: the engine's work is finished, the answer goes nowhere.
 *
 * Threads: the loop's.
 */
#ifndef IDEM_API_API_H
#define IDEM_API_API_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/digest.h"
#include "base/error.h"
#include "base/text.h"
#include "base/uid.h"
#include "core/intent.h"
#include "core/limits.h"
#include "core/rules.h"
#include "engine/engine.h"
#include "net/server.h"
#include "provider/callback.h"

struct idem_api;

#define IDEM_API_SECRETS_MAX   4  /* Times two rules: IDEM_FINGERPRINTS_MAX. */
#define IDEM_API_PROVIDERS_MAX 32 /* Of the rules. */

/* Credentials of the configuration, with bootstrap and the service's own. */
#define IDEM_API_CONFIGURED_MAX 130

/* "principal (label)": who did something. */
#define IDEM_API_BY_MAX (IDEM_PRINCIPAL_MAX + IDEM_LABEL_MAX + 3)

/* One of the configuration's credentials. The secret itself is never kept. */
struct idem_credential {
    struct idem_digest secret_sha256; /* Of the bearer token's bytes. */
    struct idem_str principal;
    bool is_operator; /* Operators use the operator's routes, not the merchants'. */
    /* The provider entries granted to it; "*": every one. Others than the rules' do not count. */
    const struct idem_str *providers;
    size_t provider_count;
};

/* What one principal may take. Operators are not limited. 0: no limit. */
struct idem_api_limits {
    size_t principal_requests_max; /* Inside the edge at once; unless 0, half of the reads too. */
    int64_t principal_rate;        /* Requests a second ... */
    int64_t principal_burst;       /* ... and how many at once after a pause; 0: the rate. */
};

/* How a reconciliation that the service ran by itself ended. */
enum idem_api_reconciled_verdict {
    IDEM_API_RECONCILED_NONE = 0, /* None has ended yet. */
    IDEM_API_RECONCILED_AGREED,   /* Nothing is left. */
    IDEM_API_RECONCILED_LEFT,     /* Differences are left for a person. */
    IDEM_API_RECONCILED_FAILED,   /* It did not come to its end; it will be tried again. */
    IDEM_API_RECONCILED_LATE,     /* Likewise: it took longer than it may, and was ended. */
    IDEM_API_RECONCILED_COUNT
};

/* Those of one provider entry. Times are wall time in microseconds; 0: none yet. */
struct idem_api_reconciled {
    enum idem_api_reconciled_verdict verdict; /* Of the last one. */
    int64_t ended_us;                         /* When that one ended. */
    int64_t done_us;                          /* Up to where the entry has been reconciled. */
    uint64_t counts[IDEM_API_RECONCILED_COUNT];
};

/* What only the daemon knows, for /metrics, /readyz and operators. Zero: not so, or not known. */
struct idem_api_gauges {
    struct idem_str version; /* A constant. */
    int64_t uptime_us;
    int64_t loop_lag_us;      /* How late the loop was, at worst since the last gauges. */
    bool disk_low;            /* Below its reserve. */
    bool store_silent;        /* Its server does not answer. */
    bool store_standbys;      /* Others answer for what its server commits. */
    bool store_standbys_gone; /* They did, since the start. */

    /* struct idem_reaper_stats */
    uint64_t reaper_expired;
    uint64_t reaper_removed;
    int64_t reaper_horizon_us;
    bool clock_apart;

    /* struct idem_outbox_stats */
    uint64_t outbox_delivered;
    uint64_t outbox_failed;
    uint64_t outbox_dead;
    uint64_t outbox_gone;
    uint64_t outbox_in_hand;

    /* struct idem_restore_stats */
    bool restored;
    bool restore_needs_operator;
    int64_t restore_from_us;
    int64_t restore_begins_us;
    uint64_t restore_listed;
    uint64_t restore_failures;

    const struct idem_api_reconciled *reconciled; /* By provider of the rules; NULL: not known. */
};

/*
 * Something that an operator had done or tried to, as far as the store had a word in it: looks and
 * what the bytes alone refuse are none. The reason that was given is not in it.
 */
struct idem_api_act {
    const char *verb;       /* A constant, such as "resolve-failed" or "credential-add". */
    const char *outcome;    /* "done", a compensation's state, or a problem's code. A constant. */
    struct idem_uid object; /* An operation or a credential; zeros: none. */
    uint64_t lost;          /* Acts after this one that found no room until it was taken. */
    size_t by_len;
    char by[IDEM_API_BY_MAX];
};

/* A secret that fingerprints are made with. Records name it by id. */
struct idem_secret {
    uint32_t id;
    struct idem_str bytes;
};

/* What a route may be configured to do, one for every keyed endpoint. */
struct idem_route_policy {
    enum idem_in_flight in_flight;
    int64_t wait_us;                /* How long a caller waits unless it says otherwise. */
    bool answer_resource;           /* Replays of a success show the resource as it is now. */
    bool raw_body;                  /* Fingerprint by bytes, not by meaning. */
    const struct idem_str *ignored; /* JSON pointers that the fingerprint leaves out. */
    size_t ignored_count;
};

/* Everything is borrowed as long as the api, but for the credentials, which are copied. */
struct idem_api_options {
    struct idem_engine *engine;
    const struct idem_rules *rules;
    struct idem_clock *clock;
    const struct idem_credential *credentials;
    size_t credential_count;
    struct idem_digest bootstrap_sha256; /* An operator, "bootstrap"; zeros: none. */
    struct idem_str effect_secret;
    const struct idem_secret *fingerprint_secrets; /* The first is the current one. */
    size_t fingerprint_secret_count;               /* 1 to IDEM_API_SECRETS_MAX. */
    bool scope_by_principal;                       /* A key is one key over all endpoints. */
    struct idem_port *port;                        /* For listings; NULL: none. */
    struct idem_callback_reader *callbacks;        /* NULL: no provider is listened to. */
    bool webhooks_allow_http;                      /* Of a merchant's address; else https only. */
    struct idem_route_policy routes[IDEM_ENDPOINT_COUNT];
    size_t requests_max;    /* Merchants' exchanges inside the edge at once. */
    size_t reads_max;       /* Of these, how many ask the store for something; 0: 64. */
    size_t credentials_max; /* Of the store, that are known at once; 0: 1024. */
    size_t body_max;        /* Bytes; the server refuses what is longer. */
    struct idem_api_limits limits;
};

/* Everybody waits up to 10 s, answers are stored, bodies are compared by meaning. */
void idem_api_routes_default(struct idem_route_policy routes[IDEM_ENDPOINT_COUNT]);

/* Names the effect secret without telling it: for idem_store_options.effect_secret_check. */
struct idem_digest idem_api_effect_secret_check(struct idem_digester *digester,
                                                struct idem_str effect_secret);

/* Gives an api; destroy it with idem_api_destroy(). */
enum idem_err idem_api_create(const struct idem_api_options *options,
                              struct idem_api **ret_api,
                              struct idem_error *reterr) IDEM_MUST_CHECK;

/* For idem_server_options; the context is the `struct idem_api *`. */
extern const struct idem_server_ops idem_api_server_ops;

/* Answers what the engine has finished. Call after idem_engine_step(). */
void idem_api_step(struct idem_api *api);

/* Monotonic time at which a step is needed even if nothing happens. */
int64_t idem_api_wake_us(const struct idem_api *api);

/*
 * Replaces the configuration's credentials as a whole, with the first operator's (zeros: none).
 * What is being worked on goes on under the one it came with. IDEM_E_INVALID, IDEM_E_LIMIT: nothing
 * has changed.
 */
enum idem_err idem_api_reload_credentials(struct idem_api *api,
                                          const struct idem_credential *credentials,
                                          size_t count,
                                          struct idem_digest bootstrap_sha256,
                                          struct idem_error *reterr) IDEM_MUST_CHECK;

/*
 * The store has more credentials than `credentials_max`, so some do not count, and nobody unknown
 * is refused for good. Ends when enough of them were revoked, or by a restart with a higher limit.
 */
bool idem_api_credentials_crowded(const struct idem_api *api);

/* Moves at most `max` acts into `ret`, oldest first; returns how many. Call it after each step. */
size_t idem_api_take_acts(struct idem_api *api, struct idem_api_act *ret, size_t max);
struct idem_str idem_api_act_by(const struct idem_api_act *act); /* "principal (label)". */

/* From now on; what a principal has inside already stays. */
void idem_api_reload_limits(struct idem_api *api, const struct idem_api_limits *limits);

/* Whose figures stand in /metrics; NULL: none. Borrowed. */
void idem_api_set_server(struct idem_api *api, const struct idem_server *server);

void idem_api_set_gauges(struct idem_api *api, const struct idem_api_gauges *gauges);

/* Recovery has looked at everything that an earlier process left; /readyz says no before. */
void idem_api_set_ready(struct idem_api *api, bool caught_up);

/* /readyz says no from now on; requests are still answered (the engine refuses new work). */
void idem_api_drain(struct idem_api *api);

/* No exchange is open, and nothing of its own is in the engine. */
bool idem_api_idle(const struct idem_api *api);

/* Idle. Accepts NULL. */
void idem_api_destroy(struct idem_api *api);

#endif /* IDEM_API_API_H */
