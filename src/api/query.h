/*
 * query.h - the query of a request: at most one known member.
 */
#ifndef IDEM_API_QUERY_H
#define IDEM_API_QUERY_H

#include <stdbool.h>

#include "api/fault.h"
#include "base/text.h"

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

#endif /* IDEM_API_QUERY_H */
