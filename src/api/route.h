/*
 * route.h - which resource and which method a request names. The table is the API.
 */
#ifndef IDEM_API_ROUTE_H
#define IDEM_API_ROUTE_H

#include <stdbool.h>

#include "api/fault.h"
#include "base/text.h"
#include "base/uid.h"
#include "core/intent.h"
#include "net/server.h"

enum idem_route_kind {
    IDEM_ROUTE_NONE = 0,
    IDEM_ROUTE_KEYED,            /* One of the endpoints. */
    IDEM_ROUTE_PAYMENT,          /* GET by id. */
    IDEM_ROUTE_PAYMENT_BY_ORDER, /* GET ?order_no= */
    IDEM_ROUTE_REFUND,           /* GET by id. */
    IDEM_ROUTE_OPERATION,        /* GET by id. */
    IDEM_ROUTE_OPERATION_BY_KEY, /* GET ?endpoint= with the key in its header. */
    IDEM_ROUTE_ABANDON,
    IDEM_ROUTE_HEALTH,
    IDEM_ROUTE_READY,
    IDEM_ROUTE_METRICS,
    IDEM_ROUTE_CALLBACK, /* A provider's; its signature is its credential. */
    /* From here on for operators. */
    IDEM_ROUTE_ADMIN_LIST, /* GET ?state=&cursor= */
    IDEM_ROUTE_ADMIN_OPERATION,
    IDEM_ROUTE_ADMIN_RESOLVE,
    IDEM_ROUTE_ADMIN_ERASE,
    IDEM_ROUTE_ADMIN_OF_PAYMENT, /* GET ?cursor= */
    IDEM_ROUTE_ADMIN_SUMMARY,
    IDEM_ROUTE_ADMIN_CREDENTIALS, /* GET ?cursor= */
    IDEM_ROUTE_ADMIN_CREDENTIAL_PUT,
    IDEM_ROUTE_ADMIN_CREDENTIAL_REVOKE,
    IDEM_ROUTE_ADMIN_RESTORED,
    IDEM_ROUTE_ADMIN_RESTORED_END,
    IDEM_ROUTE_ADMIN_CASES, /* GET ?state=&kind=&cursor= */
    IDEM_ROUTE_ADMIN_CASE,
    IDEM_ROUTE_ADMIN_CASE_RESOLVE,
    IDEM_ROUTE_ADMIN_CASE_COMPENSATE,
    IDEM_ROUTE_ADMIN_WEBHOOKS, /* GET ?cursor= */
    IDEM_ROUTE_ADMIN_WEBHOOK_PUT,
    IDEM_ROUTE_ADMIN_WEBHOOK_ROTATE,
    IDEM_ROUTE_ADMIN_WEBHOOK_DISABLE,
    IDEM_ROUTE_ADMIN_WEBHOOK_ENABLE,
    IDEM_ROUTE_ADMIN_WEBHOOK_TEST,
    IDEM_ROUTE_ADMIN_DELIVERIES, /* GET ?state=&webhook=&cursor= */
    IDEM_ROUTE_ADMIN_REPLAY,
    IDEM_ROUTE_ADMIN_EFFECTS,  /* GET ?provider=&from=&to=&cursor= */
    IDEM_ROUTE_ADMIN_LISTINGS, /* Likewise. */
    IDEM_ROUTE_ADMIN_EVIDENCE,
    IDEM_ROUTE_COUNT
};

#define IDEM_ROUTE_PATH_MAX 80

struct idem_route {
    enum idem_route_kind kind;
    enum idem_endpoint endpoint; /* KEYED. */
    struct idem_uid id;          /* Where the path has one. */
    size_t name_at;              /* Likewise a provider entry's name: where it lies in `path`. */
    size_t name_len;
    size_t path_len;
    char path[IDEM_ROUTE_PATH_MAX]; /* As the table spells it, the id in lower case. */
};

/*
 * Finds the route. On false the fault says NOT_FOUND, METHOD_NOT_ALLOWED (then `*allow` has the
 * methods that there are) or REQUEST_INVALID (a path that cannot be decoded).
 */
bool idem_route_find(const struct idem_net_request *request,
                     struct idem_route *ret_route,
                     struct idem_buf *allow,
                     struct idem_fault *ret_fault) IDEM_MUST_CHECK;

/* Only an operator's credential opens it. */
bool idem_route_is_admin(enum idem_route_kind kind);

struct idem_str idem_route_path(const struct idem_route *route);
struct idem_str idem_route_name(const struct idem_route *route);

#endif /* IDEM_API_ROUTE_H */
