/*
 * A date that is taken for another one would let a request through that is older than what is
 * remembered, so the obsolete forms, zones, and a day name that does not fit are refused and not
 * guessed.
 */
#include "api/first_sent.h"

#include "api/header.h"
#include "base/date.h"

bool idem_first_sent_read(const struct idem_net_request *request,
                          int64_t *ret_first_sent_us,
                          struct idem_fault *ret_fault)
{
    struct idem_str value;
    int64_t first_sent_us = 0;
    size_t count = idem_header_find(request, IDEM_STR("Repeatability-First-Sent"), &value);
    bool valid = count == 1 && idem_date_parse_imf(value, &first_sent_us) && first_sent_us > 0;
    if (count > 0 && !valid) {
        return idem_fault_set(ret_fault, IDEM_PROBLEM_HEADER_INVALID,
                              "Repeatability-First-Sent must be one IMF-fixdate such as \"Sun, 06 "
                              "Nov 1994 08:49:37 GMT\".");
    }
    *ret_first_sent_us = first_sent_us;
    return true;
}
