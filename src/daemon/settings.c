/*
 * libconfig reads the syntax, the tables say what it may mean.
 *
 * Nothing is looked up by name: the members that are there are walked, so a misspelt setting is an
 * error and not a silent default. Automatic conversion stays off, so a number in quotes is an error
 * as well. libconfig itself refuses a name that stands twice. It would follow @include in front of
 * every other rule; a line that begins with it is refused before libconfig sees the text, since a
 * configuration that says who may move money is one file.
 */
#include "daemon/settings.h"

#include <libconfig.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/bug.h"
#include "base/digest.h"
#include "daemon/hex.h"

void idem_settings_init(struct idem_settings *settings, const char *file, char *memory, size_t max)
{
    *settings = (struct idem_settings){ .file = file };
    idem_buf_init(&settings->text, memory, max);
}

enum idem_err idem_settings_refuse(struct idem_settings *settings,
                                   unsigned line,
                                   const char *format,
                                   ...)
{
    char what[IDEM_ERROR_TEXT_MAX];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(what, sizeof(what), format, args); /* Cut text is still text. */
    va_end(args);
    return idem_error_set(settings->error, IDEM_E_INVALID, "%s:%u: %s", settings->file, line, what);
}

static enum idem_err bool_read(struct idem_settings *settings,
                               const config_setting_t *value,
                               bool *ret_flag)
{
    if (config_setting_type(value) != CONFIG_TYPE_BOOL) {
        return idem_settings_refuse(settings, value->line, "'%s' must be true or false",
                                    value->name);
    }
    *ret_flag = config_setting_get_bool(value) != 0;
    return IDEM_OK;
}

static enum idem_err number_read(struct idem_settings *settings,
                                 const config_setting_t *value,
                                 const struct idem_setting *setting,
                                 int64_t *ret_number)
{
    IDEM_ASSERT(setting->min <= setting->max);
    IDEM_ASSERT(setting->scale > 0);
    IDEM_ASSERT(setting->max <= INT64_MAX / setting->scale);

    int type = config_setting_type(value);
    if (type != CONFIG_TYPE_INT && type != CONFIG_TYPE_INT64) {
        return idem_settings_refuse(settings, value->line, "'%s' must be a whole number",
                                    value->name);
    }
    int64_t number = config_setting_get_int64(value);
    if (number < setting->min || number > setting->max) {
        return idem_settings_refuse(settings, value->line, "'%s' is %lld, allowed is %lld to %lld",
                                    value->name, (long long)number, (long long)setting->min,
                                    (long long)setting->max);
    }
    *ret_number = number * setting->scale;
    return IDEM_OK;
}

static bool text_is_plain(const char *text)
{
    for (const char *at = text; *at != '\0'; at++) {
        if ((unsigned char)*at < 0x20 || *at == 0x7F) {
            return false;
        }
    }
    return true;
}

enum idem_err idem_settings_text(struct idem_settings *settings,
                                 const struct config_setting_t *value,
                                 size_t max,
                                 const char **ret_text)
{
    const char *name = value->name != NULL ? value->name : "element";
    if (config_setting_type(value) != CONFIG_TYPE_STRING) {
        return idem_settings_refuse(settings, value->line, "'%s' must be text in quotes", name);
    }
    const char *text = config_setting_get_string(value);
    size_t len = text != NULL ? strlen(text) : 0; /* NULL: libconfig had no memory for it. */
    if (len == 0 || len > max || !text_is_plain(text)) {
        return idem_settings_refuse(settings, value->line,
                                    "'%s' must be 1 to %zu characters without control characters",
                                    name, max);
    }
    size_t from = settings->text.len;
    idem_buf_add_bytes(&settings->text, text, len + 1);
    if (settings->text.full) {
        return idem_settings_refuse(settings, value->line, "the configuration is too long");
    }
    *ret_text = settings->text.data + from;
    return IDEM_OK;
}

static enum idem_err choice_refuse(struct idem_settings *settings,
                                   const config_setting_t *value,
                                   const char *const *choices)
{
    char memory[256];
    struct idem_buf list;
    idem_buf_init(&list, memory, sizeof(memory));
    for (size_t i = 0; choices[i] != NULL; i++) {
        idem_buf_printf(&list, "%s\"%s\"", i == 0 ? "" : ", ", choices[i]);
    }
    IDEM_ASSERT(!list.full);
    return idem_settings_refuse(settings, value->line, "'%s' must be one of %.*s", value->name,
                                (int)list.len, list.data);
}

/* Enums are stored as the unsigned that gcc and clang make of them. */
static enum idem_err choice_read(struct idem_settings *settings,
                                 const config_setting_t *value,
                                 const char *const *choices,
                                 void *ret_choice)
{
    _Static_assert(sizeof(enum idem_setting_kind) == sizeof(unsigned), "an enum is an unsigned");
    if (config_setting_type(value) != CONFIG_TYPE_STRING) {
        return choice_refuse(settings, value, choices);
    }
    const char *text = config_setting_get_string(value);
    for (unsigned i = 0; text != NULL && choices[i] != NULL; i++) {
        if (strcmp(text, choices[i]) == 0) {
            memcpy(ret_choice, &i, sizeof(i));
            return IDEM_OK;
        }
    }
    return choice_refuse(settings, value, choices);
}

static enum idem_err digest_read(struct idem_settings *settings,
                                 const config_setting_t *value,
                                 struct idem_digest *ret_digest)
{
    struct idem_digest digest;
    struct idem_str text = idem_str_from(config_setting_get_string(value)); /* Or empty. */
    if (!idem_hex_parse(text, digest.bytes, sizeof(digest.bytes))) {
        return idem_settings_refuse(settings, value->line,
                                    "'%s' must be 64 lower-case hexadecimal digits", value->name);
    }
    *ret_digest = digest;
    return IDEM_OK;
}

static enum idem_err aggregate_read(struct idem_settings *settings,
                                    const config_setting_t *value,
                                    const struct idem_setting *setting,
                                    void *target)
{
    if (setting->kind == IDEM_SETTING_GROUP && config_setting_is_group(value) == CONFIG_FALSE) {
        return idem_settings_refuse(settings, value->line, "'%s' must be a group { ... }",
                                    value->name);
    }
    bool is_list = config_setting_type(value) == CONFIG_TYPE_LIST ||
                   config_setting_type(value) == CONFIG_TYPE_ARRAY;
    if (setting->kind == IDEM_SETTING_LIST && !is_list) {
        return idem_settings_refuse(settings, value->line, "'%s' must be a list ( ... )",
                                    value->name);
    }
    return setting->read(settings, value, target);
}

static enum idem_err value_read(struct idem_settings *settings,
                                const config_setting_t *value,
                                const struct idem_setting *setting,
                                void *target)
{
    void *place = (char *)target + setting->offset;
    switch (setting->kind) {
    case IDEM_SETTING_BOOL:
        return bool_read(settings, value, place);
    case IDEM_SETTING_NUMBER:
        return number_read(settings, value, setting, place);
    case IDEM_SETTING_TEXT:
        return idem_settings_text(settings, value, (size_t)setting->max, place);
    case IDEM_SETTING_CHOICE:
        return choice_read(settings, value, setting->choices, place);
    case IDEM_SETTING_DIGEST:
        return digest_read(settings, value, place);
    case IDEM_SETTING_GROUP:
    case IDEM_SETTING_LIST:
        return aggregate_read(settings, value, setting, place);
    case IDEM_SETTING_NONE:
    case IDEM_SETTING_COUNT:
        break;
    }
    IDEM_UNREACHABLE();
}

enum idem_err idem_settings_group(struct idem_settings *settings,
                                  const struct config_setting_t *group,
                                  const struct idem_setting *table,
                                  void *target)
{
    if (config_setting_is_group(group) == CONFIG_FALSE) {
        return idem_settings_refuse(settings, group->line, "expected a group { ... }");
    }
    int count = config_setting_length(group);
    for (int i = 0; i < count; i++) {
        const config_setting_t *value = config_setting_get_elem(group, (unsigned)i);
        const struct idem_setting *setting = table;
        if (value->name == NULL) { /* In a group only if libconfig had no memory for it. */
            return idem_settings_refuse(settings, value->line, "no memory for a setting's name");
        }
        while (setting->name != NULL && strcmp(setting->name, value->name) != 0) {
            setting++;
        }
        if (setting->name == NULL) {
            return idem_settings_refuse(settings, value->line, "unknown setting '%s'", value->name);
        }
        enum idem_err err = value_read(settings, value, setting, target);
        if (err != IDEM_OK) {
            return err;
        }
    }
    return IDEM_OK;
}

static enum idem_err includes_refuse(struct idem_settings *settings, const char *text)
{
    struct idem_str rest = idem_str_from(text);
    for (unsigned line = 1; rest.len > 0; line++) {
        struct idem_str trimmed = idem_str_trim(idem_str_next(&rest, '\n'));
        if (idem_str_starts(trimmed, IDEM_STR("@include"))) {
            return idem_settings_refuse(settings, line, "@include is not allowed");
        }
    }
    return IDEM_OK;
}

enum idem_err idem_settings_parse(struct idem_settings *settings,
                                  const char *text,
                                  const struct idem_setting *table,
                                  void *target,
                                  struct idem_error *reterr)
{
    settings->error = reterr;
    enum idem_err err = includes_refuse(settings, text);
    if (err != IDEM_OK) {
        return err;
    }

    config_t parsed;
    config_init(&parsed);
    if (config_read_string(&parsed, text) == CONFIG_TRUE) {
        err = idem_settings_group(settings, config_root_setting(&parsed), table, target);
    } else {
        err = idem_settings_refuse(settings, (unsigned)config_error_line(&parsed), "%s",
                                   config_error_text(&parsed));
    }
    config_destroy(&parsed);
    return err;
}
