/*
 * log.h - one line of JSON on stderr for each thing an operator may want to know.
 *
 * Only the daemon logs. Fields are what the daemon itself knows: addresses, paths, counts, error
 * texts. Keys, secrets, credentials and bodies are never fields.
 *
 * Threads: any; a line is one write.
 */
#ifndef IDEM_DAEMON_LOG_H
#define IDEM_DAEMON_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum idem_log_level {
    IDEM_LOG_INFO = 0,
    IDEM_LOG_WARN,
    IDEM_LOG_ERROR,
    IDEM_LOG_LEVEL_COUNT
};

struct idem_log_field {
    const char *name;
    const char *text; /* NULL: the field is `number`. */
    int64_t number;
};

#define IDEM_LOG_TEXT(field, value) ((struct idem_log_field){ .name = (field), .text = (value) })
#define IDEM_LOG_NUMBER(field, value) \
    ((struct idem_log_field){ .name = (field), .number = (value) })

/* {"time":"2026-01-31T12:00:00.000Z","level":"info","event":"ready",...fields} */
void idem_log(enum idem_log_level level,
              const char *event,
              const struct idem_log_field *fields,
              size_t field_count);

#endif /* IDEM_DAEMON_LOG_H */
