/*
 * config_group.h - the groups of a configuration, for whoever lists what may be set and what is.
 */
#ifndef IDEM_DAEMON_CONFIG_GROUP_H
#define IDEM_DAEMON_CONFIG_GROUP_H

#include <stdbool.h>
#include <stddef.h>

struct idem_config;
struct idem_setting;

/* What may be set in one group, and where its values are. */
struct idem_config_group {
    const char *path; /* "limits." stands before its names; empty: the top level. */
    const struct idem_setting *table;
    const void *target;
};

/*
 * The groups that a configuration has, one an index from 0; false behind the last. Of lists it is
 * the first element, so its values are defaults if the text says no more than `providers = ({})`.
 */
bool idem_config_group(const struct idem_config *config,
                       size_t index,
                       struct idem_config_group *ret_group);

#endif /* IDEM_DAEMON_CONFIG_GROUP_H */
