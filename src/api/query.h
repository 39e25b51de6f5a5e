/*
 * query.h - the query of a request: known members, each at most once.
 */
#ifndef IDEM_API_QUERY_H
#define IDEM_API_QUERY_H

#include <stdbool.h>

#include "api/fault.h"
#include "base/text.h"

/* The names that a query may have. */
struct idem_query_members {
    const struct idem_str *names;
    size_t count;
};

/* No members at all. */
bool idem_query_check_empty(struct idem_str query, struct idem_fault *ret_fault) IDEM_MUST_CHECK;

/*
 * Exactly the member `name`, once, not empty. The value is decoded into `memory` and must fit
 * there.
 */
bool idem_query_read_one(struct idem_str query,
                         struct idem_str name,
                         struct idem_buf *memory,
                         struct idem_str *ret_value,
                         struct idem_fault *ret_fault) IDEM_MUST_CHECK;

/*
 * Any of the members `names`, each at most once and not empty, into `values` at the same index;
 * empty where it is absent.
 */
bool idem_query_read_some(struct idem_str query,
                          const struct idem_query_members *members,
                          struct idem_buf *memory,
                          struct idem_str *ret_values,
                          struct idem_fault *ret_fault) IDEM_MUST_CHECK;

#endif /* IDEM_API_QUERY_H */
