/*
 * config.h - what `idem serve` is told, read at start; service_reload.c says what a HUP changes.
 *
 * Every setting, its range and default are in docs/configuration.md. A configuration is used whole
 * or not at all: an unknown setting, a wrong type, a value out of range or two values that
 * contradict each other are refused with file and line.
 *
 * Text is terminated and lives as long as the configuration.
 */
#ifndef IDEM_DAEMON_CONFIG_H
#define IDEM_DAEMON_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/digest.h"
#include "base/error.h"
#include "core/intent.h"
#include "core/rules.h"
#include "engine/engine.h"

#define IDEM_CONFIG_FILE_MAX        131072 /* Bytes of a configuration file. */
#define IDEM_CONFIG_CREDENTIALS_MAX 64
#define IDEM_CONFIG_PROVIDERS_MAX   32
#define IDEM_CONFIG_ROUTES_MAX      (IDEM_ENDPOINT_COUNT - 1)
#define IDEM_CONFIG_IGNORED_MAX     16
#define IDEM_CONFIG_CALLBACK_MAX    4 /* Secrets of one entry's callbacks. */

enum idem_config_role {
    IDEM_CONFIG_MERCHANT = 0,
    IDEM_CONFIG_OPERATOR
};

enum idem_config_adapter {
    IDEM_CONFIG_BRIDGE = 0,
    IDEM_CONFIG_STRIPE
};

enum idem_config_answer {
    IDEM_CONFIG_STORED = 0,
    IDEM_CONFIG_RESOURCE
};

enum idem_config_body {
    IDEM_CONFIG_JSON = 0,
    IDEM_CONFIG_RAW
};

enum idem_config_log {
    IDEM_CONFIG_LOG_INCIDENTS = 0, /* What an operator may want to know. */
    IDEM_CONFIG_LOG_OPERATIONS     /* And how every operation ended. */
};

enum idem_config_store {
    IDEM_CONFIG_SQLITE = 0,
    IDEM_CONFIG_POSTGRES
};

enum idem_config_scope {
    IDEM_CONFIG_SCOPE_ENDPOINT = 0,
    IDEM_CONFIG_SCOPE_PRINCIPAL
};

struct idem_config_credential {
    unsigned line;
    const char *principal;
    struct idem_digest secret; /* SHA-256 of the bearer. */
    enum idem_config_role role;
    struct idem_str providers[IDEM_CONFIG_PROVIDERS_MAX]; /* Entries it may use. */
    size_t provider_count;
};

struct idem_config_breaker {
    int64_t unknowns; /* 0: there is none. */
    int64_t percent;
    int64_t window_us;
    int64_t open_us;
    int64_t probes;
};

/* When the service reconciles an entry by itself. */
struct idem_config_reconciliation {
    int64_t every_us; /* The length of a period; 0: never. */
    int64_t lag_us;   /* How long after its end. */
    int64_t grace_us;
    int64_t timeout_us; /* Of one run. */
};

struct idem_config_provider {
    unsigned line;
    const char *entry;
    enum idem_config_adapter adapter;
    const char *base_url;        /* NULL: the adapter's own. */
    const char *credential_file; /* At most one of the two; neither: no credential is sent. */
    const char *credential_env;
    struct idem_str callback_secrets[IDEM_CONFIG_CALLBACK_MAX]; /* "file:PATH" or "env:NAME". */
    size_t callback_secret_count;
    const char *account;
    const char *region;
    int64_t request_timeout_us;
    int64_t settle_us;
    int64_t concurrency; /* 0: half of limits.sends, or all of it if no other entry is there. */
    int64_t rate_per_s;  /* 0: no limit. */
    int64_t retry_after_max_us;
    struct idem_config_breaker breaker;
    enum idem_partial_capture partial_capture;
    bool listing;
    struct idem_config_reconciliation reconciliation;
    struct idem_capability capability[IDEM_EFFECT_KIND_COUNT];
};

/* One keyed endpoint; zero is not configured. */
struct idem_config_route {
    unsigned line;
    const char *endpoint;
    enum idem_in_flight in_flight;
    int64_t wait_us;
    enum idem_config_answer answer;
    enum idem_config_body body;
    struct idem_str ignored[IDEM_CONFIG_IGNORED_MAX]; /* JSON pointers. */
    size_t ignored_count;
};

struct idem_config {
    const char *file; /* For messages. */
    const char *listen;
    bool insecure;
    bool new_store;         /* Only from the command line: the store begins now. */
    bool restored;          /* Likewise: the store is an older copy. */
    const char *store;      /* "sqlite:PATH" or a URL; may hold a password, so nobody prints it. */
    const char *secrets;    /* NULL: the store's path and ".secrets"; never with a database. */
    bool store_is_argument; /* It came from the command line. */
    bool file_is_private;   /* Nobody but its owner can read the file. */
    enum idem_config_scope scope;
    int64_t disk_reserve_bytes;
    int64_t retention_us;
    int64_t tombstone_us;         /* How long a key without a payment is known, from its end. */
    int64_t retry_window_us;      /* How long callers may go on retrying. */
    struct idem_digest bootstrap; /* Of the first operator's bearer; zeros: none. */
    enum idem_config_log log;

    struct idem_config_credential credentials[IDEM_CONFIG_CREDENTIALS_MAX];
    size_t credential_count;
    struct idem_config_provider providers[IDEM_CONFIG_PROVIDERS_MAX];
    size_t provider_count;
    struct idem_config_route routes[IDEM_CONFIG_ROUTES_MAX];
    size_t route_count; /* Endpoints that are not here wait and store, as ever. */

    struct {
        int64_t connections;
        int64_t head_bytes;
        int64_t body_bytes;
        int64_t requests;
        int64_t sends;
        int64_t recoveries;
        int64_t waiters_per_key;
        int64_t cache_entries;
        int64_t reads;
        int64_t credentials;
        int64_t principal_requests; /* At once; 0: no limit. As the two below. */
        int64_t principal_rate;     /* A second. */
        int64_t principal_burst;    /* 0: as many as a second's. */
        int64_t store_writers;      /* Connections to a database; these two. */
        int64_t store_readers;
    } limits;

    struct {
        int64_t lease_us;
        int64_t retry_first_us;
        int64_t ask_first_us;
        int64_t ask_max_us;
        int64_t ask_give_up_us;
        int64_t parked_ask_us;
        int64_t release_us;
        int64_t stop_grace_us;
        int64_t head_us;
        int64_t body_us;
        int64_t idle_us;
        int64_t write_us;
        int64_t store_wait_us; /* With a database, as the next. */
        int64_t instance_silence_us;
    } timings;

    struct {
        bool allow_private; /* Addresses that only the own network reaches. */
        bool allow_http;
        int64_t deliveries_max; /* At once. */
        int64_t keep_us;        /* How long what was told is known; providers' events likewise. */
    } webhooks;

    /* Made of `listen` and `store` by idem_config_check(). */
    char host[64];
    uint16_t port;
    enum idem_config_store store_kind;
    const char *store_path; /* NULL: it is not a file. */
    char store_label[1100]; /* For messages and logs. */

    char *memory; /* Of `text_used` bytes and more. */
    size_t text_used;
};

/* Gives a configuration of defaults: no credentials, no providers. */
enum idem_err idem_config_create(struct idem_config **ret_config,
                                 struct idem_error *reterr) IDEM_MUST_CHECK;

/* Reads `path` over the defaults. Once, before idem_config_check(). */
enum idem_err idem_config_read(struct idem_config *config,
                               const char *path,
                               struct idem_error *reterr) IDEM_MUST_CHECK;

/* The same from text; `file` stands in messages and is borrowed. */
enum idem_err idem_config_parse(struct idem_config *config,
                                const char *file,
                                const char *text,
                                struct idem_error *reterr) IDEM_MUST_CHECK;

/* What `--demo` means: demo.c has it as text, read by the same rules. */
enum idem_err idem_config_demo(struct idem_config *config,
                               struct idem_error *reterr) IDEM_MUST_CHECK;

/* Whether the values fit each other. Nothing is started before this says IDEM_OK. */
enum idem_err idem_config_check(struct idem_config *config,
                                struct idem_error *reterr) IDEM_MUST_CHECK;

/* config_store.c: the part of it that is about `store` alone. */
enum idem_err idem_config_store_check(struct idem_config *config,
                                      struct idem_error *reterr) IDEM_MUST_CHECK;

/* How the configured database is opened. Borrows the configuration's text. */
struct idem_postgres_settings idem_config_database(const struct idem_config *config);

/* "127.0.0.1:8080", "[::1]:8080" into host and port; false if it is neither. */
bool idem_config_address(const char *text, char *ret_host, size_t host_max, uint16_t *ret_port);

/* True if `host` is an address that only this machine reaches. */
bool idem_config_is_loopback(const char *host);

/* Accepts NULL. */
void idem_config_destroy(struct idem_config *config);

#endif /* IDEM_DAEMON_CONFIG_H */
