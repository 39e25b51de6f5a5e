/*
 * parts.h - the configuration and the secrets in the shape in which the other layers want them.
 *
 * Rules for decisions, entries for the port, credentials and route policies for the edge: all made
 * before anything is opened; a reload changes credentials and limits alone. Everything points into
 * the parts or into the configuration, so both outlive whatever borrows them.
 */
#ifndef IDEM_DAEMON_PARTS_H
#define IDEM_DAEMON_PARTS_H

#include "api/api.h"
#include "base/private_file.h"
#include "core/rules.h"
#include "daemon/config.h"
#include "daemon/secrets.h"
#include "provider/http_port.h"

/* What is secret of one provider entry; terminated words. */
struct idem_provider_words {
    char credential[IDEM_SECRET_WORD_MAX];
    char callback[IDEM_CALLBACK_SECRETS_MAX][IDEM_SECRET_WORD_MAX];
    size_t callback_count;
};

struct idem_parts {
    const struct idem_config *config; /* Borrowed. */
    struct idem_rules rules;
    struct idem_provider_rules providers[IDEM_CONFIG_PROVIDERS_MAX];
    struct idem_provider_entry entries[IDEM_CONFIG_PROVIDERS_MAX];
    struct idem_provider_words words[IDEM_CONFIG_PROVIDERS_MAX];
    struct idem_callback_secrets callback_secrets[IDEM_CONFIG_PROVIDERS_MAX]; /* In `words`. */
    size_t provider_count;
    struct idem_credential credentials[IDEM_CONFIG_CREDENTIALS_MAX];
    struct idem_secrets secrets;
    struct idem_secret fingerprint_secrets[IDEM_SECRETS_FINGERPRINTS_MAX];
    struct idem_digest effect_secret_check;
};

/* Reads the secrets as well, and creates them for a store that does not exist yet. */
enum idem_err idem_parts_create(const struct idem_config *config,
                                struct idem_random *random,
                                struct idem_parts **ret_parts,
                                struct idem_error *reterr) IDEM_MUST_CHECK;

/* Fills in credentials, secrets and routes. */
void idem_parts_api_options(const struct idem_parts *parts, struct idem_api_options *options);

/* The configuration's credentials in the edge's shape; how many. Text is the configuration's. */
size_t idem_parts_credentials(const struct idem_config *config,
                              struct idem_credential ret_credentials[IDEM_CONFIG_CREDENTIALS_MAX]);

struct idem_api_limits idem_parts_limits(const struct idem_config *config);

/*
 * The bearers that providers are shown and the secrets of their callbacks, read again as `config`
 * says, for the entries that run: all of them or none.
 */
enum idem_err idem_parts_reload(struct idem_parts *parts,
                                const struct idem_config *config,
                                struct idem_error *reterr) IDEM_MUST_CHECK;

/* What effect ids and the secrets of webhooks are derived from. Borrowed as long as the parts. */
struct idem_str idem_parts_effect_secret(const struct idem_parts *parts);

/* How many calls to providers there can be at once. */
size_t idem_parts_calls_max(const struct idem_parts *parts);

/* Wipes what is secret. Accepts NULL. */
void idem_parts_destroy(struct idem_parts *parts);

#endif /* IDEM_DAEMON_PARTS_H */
