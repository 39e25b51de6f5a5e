/*
 * api.h - the payment API's edge: causes in, answers out, no policy.
 *
 * The server hands over complete exchanges; the edge checks what the bytes alone can say,
 * authenticates, names the intent (scope, effect id, fingerprint) and submits it. What the engine
 * gives back becomes an answer. Nothing here decides about money, and nothing here waits: an
 * exchange stays open until its request or read was reaped.
 *
 * All memory is allocated at creation. When no request is free, the answer is `unavailable`.
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
#include "core/intent.h"
#include "core/rules.h"
#include "engine/engine.h"
#include "net/server.h"

struct idem_api;

#define IDEM_API_SECRETS_MAX 4 /* Times two rules: IDEM_FINGERPRINTS_MAX. */

/* Who may call. The secret itself is never kept. */
struct idem_credential {
    struct idem_digest secret_sha256; /* Of the bearer token's bytes. */
    struct idem_str principal;
    bool is_operator;                 /* Operators use the operator's routes, not the merchants'. */
    const struct idem_str *providers; /* The provider entries granted to it. */
    size_t provider_count;
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

/* Everything is borrowed as long as the api. */
struct idem_api_options {
    struct idem_engine *engine;
    const struct idem_rules *rules;
    struct idem_clock *clock;
    const struct idem_credential *credentials;
    size_t credential_count;
    struct idem_str effect_secret;
    const struct idem_secret *fingerprint_secrets; /* The first is the current one. */
    size_t fingerprint_secret_count;               /* 1 to IDEM_API_SECRETS_MAX. */
    bool scope_by_principal;                       /* A key is one key over all endpoints. */
    struct idem_route_policy routes[IDEM_ENDPOINT_COUNT];
    size_t requests_max; /* Exchanges inside the edge at once. */
    size_t body_max;     /* Bytes; the server refuses what is longer. */
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

/* /readyz says no from now on; requests are still answered (the engine refuses new work). */
void idem_api_drain(struct idem_api *api);

/* No exchange is open. */
bool idem_api_idle(const struct idem_api *api);

/* Idle. Accepts NULL. */
void idem_api_destroy(struct idem_api *api);

#endif /* IDEM_API_API_H */
