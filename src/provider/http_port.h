/*
 * http_port.h - the port that speaks HTTP: entries, their adapters, and the transport between.
 *
 * An adapter (adapter.h) turns an effect into a request and an answer into evidence; everything
 * that is common (URL, credential, timeouts, the send guard, not-sent becomes NOT_EXECUTED, an
 * incomplete answer becomes UNKNOWN) is here, once.
 */
#ifndef IDEM_PROVIDER_HTTP_PORT_H
#define IDEM_PROVIDER_HTTP_PORT_H

#include "core/rules.h"
#include "provider/callback.h"
#include "provider/port.h"
#include "transport/client.h"

struct idem_adapter;

/* What an entry's callbacks may be signed with. */
struct idem_callback_secrets {
    struct idem_str secrets[IDEM_CALLBACK_SECRETS_MAX]; /* None is empty. */
    size_t count;
};

/*
 * One configured provider entry, as the daemon read it. Text is terminated and outlives the port.
 */
struct idem_provider_entry {
    const struct idem_adapter *adapter;
    const struct idem_provider_rules *rules; /* Its names, capabilities and timeouts. */
    const char *base_url;                    /* Without a slash at the end. */
    const char *credential;                  /* Secret; goes into the request only on the wire. */
    const struct idem_callback_secrets *callback_secrets; /* NULL: it says nothing by callback. */
};

/*
 * `client` and `entries` are borrowed as long as the port; `calls_max` at once and one listing, for
 * which the client needs a place more. A page is listed where rules and adapter both can.
 */
enum idem_err idem_http_port_create(struct idem_http_client *client,
                                    const struct idem_provider_entry *entries,
                                    size_t entry_count,
                                    size_t calls_max,
                                    struct idem_port **ret_port) IDEM_MUST_CHECK;

#endif /* IDEM_PROVIDER_HTTP_PORT_H */
