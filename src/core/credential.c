/*
 * Names of roles, as they stand in configuration, on the wire and in the operator's table.
 */
#include "core/credential.h"

#include "base/bug.h"

static const char *const role_names[IDEM_ROLE_COUNT] = {
    [IDEM_ROLE_NONE] = "none",
    [IDEM_ROLE_MERCHANT] = "merchant",
    [IDEM_ROLE_OPERATOR] = "operator",
};

const char *idem_role_name(enum idem_role role)
{
    IDEM_ASSERT(role < IDEM_ROLE_COUNT);
    return role_names[role];
}

enum idem_role idem_role_from(struct idem_str name)
{
    for (unsigned i = IDEM_ROLE_NONE + 1; i < IDEM_ROLE_COUNT; i++) {
        if (idem_str_equal(name, idem_str_from(role_names[i]))) {
            return (enum idem_role)i;
        }
    }
    return IDEM_ROLE_NONE;
}
