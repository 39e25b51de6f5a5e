/*
 * A log line is built on the stack and leaves in one write, so that lines of threads do not mix and
 * logging needs no memory. A line that does not fit loses its fields, never its event.
 */
#include "daemon/log.h"

#include <time.h>
#include <unistd.h>

#include "base/bug.h"
#include "base/json.h"
#include "base/text.h"

#define LOG_LINE_MAX 2048

static const char *const level_names[IDEM_LOG_LEVEL_COUNT] = {
    [IDEM_LOG_INFO] = "info",
    [IDEM_LOG_WARN] = "warn",
    [IDEM_LOG_ERROR] = "error",
};

static void head_add(struct idem_buf *line, enum idem_log_level level, const char *event)
{
    struct timespec now = { 0 };
    struct tm parts = { 0 };
    (void)clock_gettime(CLOCK_REALTIME, &now); /* CLOCK_REALTIME is always there. */
    (void)gmtime_r(&now.tv_sec, &parts);       /* Only a year beyond an int is refused. */
    idem_buf_printf(line, "{\"time\":\"%04d-%02d-%02dT%02d:%02d:%02d.%03ldZ\"",
                    parts.tm_year + 1900, parts.tm_mon + 1, parts.tm_mday, parts.tm_hour,
                    parts.tm_min, parts.tm_sec, now.tv_nsec / 1000000);
    idem_buf_printf(line, ",\"level\":\"%s\",\"event\":\"%s\"", level_names[level], event);
}

static void field_add(struct idem_buf *line, const struct idem_log_field *field)
{
    idem_buf_printf(line, ",\"%s\":", field->name);
    if (field->text == NULL) {
        idem_buf_add_i64(line, field->number);
        return;
    }
    struct idem_str text = idem_str_from(field->text);
    idem_json_add_string(line, idem_utf8_valid(text) ? text : IDEM_STR("(not UTF-8)"));
}

void idem_log(enum idem_log_level level,
              const char *event,
              const struct idem_log_field *fields,
              size_t field_count)
{
    IDEM_ASSERT(level < IDEM_LOG_LEVEL_COUNT);
    IDEM_ASSERT(field_count == 0 || fields != NULL);

    char memory[LOG_LINE_MAX];
    struct idem_buf line;
    idem_buf_init(&line, memory, sizeof(memory));
    head_add(&line, level, event);
    for (size_t i = 0; i < field_count; i++) {
        field_add(&line, &fields[i]);
    }
    idem_buf_add(&line, IDEM_STR("}\n"));

    if (line.full) {
        idem_buf_reset(&line);
        head_add(&line, level, event);
        idem_buf_add(&line, IDEM_STR(",\"cut\":1}\n"));
        IDEM_ASSERT(!line.full);
    }
    ssize_t written = write(STDERR_FILENO, line.data, line.len);
    (void)written; /* Nobody is left to be told. */
}
