/*
 * settings.h - configuration text into structs, by tables.
 *
 * A table says which settings a group may have, of which type and range, and where each goes.
 * What no table names is refused, and every refusal begins with "FILE:LINE: ". Durations and
 * sizes carry their unit in the name; the table scales them to the program's own units.
 *
 * Text that was read lives in the memory given to idem_settings_init(), terminated.
 */
#ifndef IDEM_DAEMON_SETTINGS_H
#define IDEM_DAEMON_SETTINGS_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/text.h"

struct config_setting_t;
struct idem_settings;

enum idem_setting_kind {
    IDEM_SETTING_NONE = 0,
    IDEM_SETTING_BOOL,   /* bool */
    IDEM_SETTING_NUMBER, /* int64_t: value * scale, min <= value <= max. */
    IDEM_SETTING_TEXT,   /* const char *: 1 to max bytes without control characters. */
    IDEM_SETTING_CHOICE, /* An enum: the index of the text in choices. */
    IDEM_SETTING_DIGEST, /* struct idem_digest: 64 hexadecimal digits. */
    IDEM_SETTING_GROUP,  /* { ... }: `read` gets it. */
    IDEM_SETTING_LIST,   /* ( ... ) or [ ... ]: `read` gets it. */
    IDEM_SETTING_COUNT
};

struct idem_setting {
    const char *name;
    enum idem_setting_kind kind;
    size_t offset; /* Into the target. */
    int64_t min;
    int64_t max;
    int64_t scale;
    const char *const *choices; /* Ended by NULL. */
    enum idem_err (*read)(struct idem_settings *settings,
                          const struct config_setting_t *value,
                          void *target);
};

struct idem_settings {
    const char *file;     /* As it stands in messages. */
    void *owner;          /* For `read` functions. */
    struct idem_buf text; /* What was read. */
    struct idem_error *error;
};

void idem_settings_init(struct idem_settings *settings, const char *file, char *memory, size_t max);

/* Parses `text` and reads its root group into `target`. Includes are refused. */
enum idem_err idem_settings_parse(struct idem_settings *settings,
                                  const char *text,
                                  const struct idem_setting *table,
                                  void *target,
                                  struct idem_error *reterr) IDEM_MUST_CHECK;

/* Reads the members of `group` by `table`, which a setting without a name ends. */
enum idem_err idem_settings_group(struct idem_settings *settings,
                                  const struct config_setting_t *group,
                                  const struct idem_setting *table,
                                  void *target) IDEM_MUST_CHECK;

/* Copies one element of a list of texts. */
enum idem_err idem_settings_text(struct idem_settings *settings,
                                 const struct config_setting_t *value,
                                 size_t max,
                                 const char **ret_text) IDEM_MUST_CHECK;

/* Refuses with "FILE:LINE: " and the text; returns IDEM_E_INVALID. */
enum idem_err idem_settings_refuse(struct idem_settings *settings,
                                   unsigned line,
                                   const char *format,
                                   ...) IDEM_PRINTF(3, 4);

#endif /* IDEM_DAEMON_SETTINGS_H */
