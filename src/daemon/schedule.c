/*
 * One child and its output.
 *
 *     due --> spawn --> reading its lines --> exit, end of output --> all handles closed --> log
 *                              |
 *              out of time, or a stop --> SIGTERM --> still there after KILL_MS --> SIGKILL
 *
 * So a child that hangs keeps the other entries waiting until its time is over, and a stop for
 * KILL_MS. The entries take turns, so that none is left behind by one that is always due. What took
 * too long is made up for period by period, since all of it at once would take longer still.
 *
 * The child is this very program (/proc/self/exe, also when the file was replaced by a newer one),
 * with an environment of its own: the service's has the providers' credentials. What it prints is
 * read and counted, so that it never blocks; the differences themselves are cases by then, and
 * stand there.
 *
 * The bearer goes over in a file of memory without a name, which the child opens as its descriptor
 * BEARER_FD: nobody else's process list, environment or disk shows it.
 */
#include "daemon/schedule.h"

#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <uv.h>

#include "base/attr.h"
#include "base/bug.h"
#include "base/date.h"
#include "base/exit.h"
#include "daemon/config.h"
#include "daemon/log.h"

#define BEARER_SIZE  32                        /* Random bytes. */
#define BEARER_TEXT  ((size_t)2 * BEARER_SIZE) /* As text. */
#define BEARER_FD    3
#define BEARER_PATH  "/proc/self/fd/3"
#define PROGRAM      "/proc/self/exe"
#define OVERLAP_US   (3600 * IDEM_US_PER_SECOND)
#define AGAIN_MAX_US (600 * IDEM_US_PER_SECOND) /* After a child that failed. */
#define KILL_MS      1000 /* From SIGTERM to SIGKILL; less than any ending waits. */
#define TEXT_MAX     128
#define OUTPUT_SIZE  4096

#define RECORD_COLUMN ((int64_t)sizeof("{\"record\":\"") - 1)

/* When an entry's turn is. */
struct turn {
    int64_t done_us;  /* End of its last period that was reconciled. */
    int64_t again_us; /* Not before: the last try failed. */
    bool behind;      /* A run was late, and what it left is not made up for yet. */
};

struct idem_schedule {
    struct idem_schedule_options options;
    struct turn turns[IDEM_CONFIG_PROVIDERS_MAX];
    struct idem_api_reconciled told[IDEM_CONFIG_PROVIDERS_MAX];
    struct idem_digest secret;
    char bearer[BEARER_TEXT + 1];
    bool any;
    bool stopped;

    /* The child. */
    bool running;
    size_t open_handles;
    uv_process_t process;
    uv_pipe_t output;
    uv_timer_t timer; /* Until it is asked to end, then until it is ended. */
    size_t index;     /* Whose turn it is, or was last. */
    bool asked;       /* To end. */
    bool late;        /* It took longer than it may. */
    int64_t end_us;
    int64_t status; /* -1: a signal ended it. */
    int64_t differences;
    int64_t totals;
    int64_t column; /* Of the output's next byte in its line. */
    char output_memory[OUTPUT_SIZE];
};

static int64_t wall_us(const struct idem_schedule *schedule)
{
    return idem_clock_wall_us(schedule->options.clock);
}

static const struct idem_config_provider *provider_at(const struct idem_schedule *schedule,
                                                      size_t index)
{
    return &schedule->options.config->providers[index];
}

enum idem_err idem_schedule_create(const struct idem_schedule_options *options,
                                   struct idem_schedule **ret_schedule,
                                   struct idem_error *reterr)
{
    struct idem_schedule *schedule = calloc(1, sizeof(*schedule));
    if (schedule == NULL) {
        return idem_error_set(reterr, IDEM_E_SYSTEM, "no memory for the schedule");
    }
    uint8_t bytes[BEARER_SIZE];
    struct idem_buf bearer;
    schedule->options = *options;
    for (size_t i = 0; i < options->config->provider_count; i++) {
        schedule->any |= options->config->providers[i].reconciliation.every_us > 0;
    }
    idem_random_fill(options->random, bytes, sizeof(bytes));
    idem_buf_init(&bearer, schedule->bearer, BEARER_TEXT);
    idem_buf_add_hex(&bearer, bytes, sizeof(bytes));
    explicit_bzero(bytes, sizeof(bytes));
    if (schedule->any) {
        schedule->secret = idem_digest_sha256(options->digester, idem_buf_str(&bearer));
    }
    *ret_schedule = schedule;
    return IDEM_OK;
}

struct idem_digest idem_schedule_secret(const struct idem_schedule *schedule)
{
    return schedule->secret;
}

const struct idem_api_reconciled *idem_schedule_told(const struct idem_schedule *schedule)
{
    return schedule->told;
}

/* ---- its end ---- */

static void verdict_tell(struct idem_schedule *schedule, enum idem_api_reconciled_verdict verdict)
{
    struct idem_api_reconciled *told = &schedule->told[schedule->index];
    told->verdict = verdict;
    told->counts[verdict] += 1;
    told->ended_us = wall_us(schedule);
    told->done_us = schedule->turns[schedule->index].done_us;
}

/* The end of the period that the entry's next run is about, if it is due now; 0: it is not. */
static int64_t due_end_us(const struct idem_schedule *schedule, size_t index)
{
    const struct idem_config_reconciliation *when = &provider_at(schedule, index)->reconciliation;
    const struct turn *turn = &schedule->turns[index];
    int64_t now_us = wall_us(schedule);
    if (when->every_us == 0 || now_us < turn->again_us) {
        return 0;
    }
    int64_t end_us = (now_us - when->lag_us) / when->every_us * when->every_us;
    int64_t step_us = turn->done_us + when->every_us;
    if (turn->behind && turn->done_us > 0 && step_us < end_us) {
        return step_us;
    }
    return end_us > turn->done_us ? end_us : 0;
}

static void child_done(struct idem_schedule *schedule)
{
    const struct idem_config_provider *provider = provider_at(schedule, schedule->index);
    struct turn *turn = &schedule->turns[schedule->index];
    const struct idem_log_field fields[] = {
        IDEM_LOG_TEXT("provider", provider->entry),
        IDEM_LOG_NUMBER("status", schedule->status),
        IDEM_LOG_NUMBER("differences", schedule->differences),
    };
    /* Totals come behind the differences; what ends otherwise has not compared to its end. */
    bool left =
        schedule->status == IDEM_EXIT_OTHER && schedule->differences > 0 && schedule->totals > 0;
    bool done = schedule->status == IDEM_EXIT_OK || left;
    schedule->running = false;
    if (done) {
        turn->done_us = schedule->end_us;
        turn->behind = turn->behind && due_end_us(schedule, schedule->index) > 0;
        verdict_tell(schedule, left ? IDEM_API_RECONCILED_LEFT : IDEM_API_RECONCILED_AGREED);
        idem_log(left ? IDEM_LOG_WARN : IDEM_LOG_INFO, "reconciled", fields,
                 IDEM_ARRAY_COUNT(fields));
        return;
    }
    int64_t every_us = provider->reconciliation.every_us;
    turn->behind |= schedule->late;
    turn->again_us = wall_us(schedule) + (every_us < AGAIN_MAX_US ? every_us : AGAIN_MAX_US);
    if (!schedule->stopped) {
        verdict_tell(schedule,
                     schedule->late ? IDEM_API_RECONCILED_LATE : IDEM_API_RECONCILED_FAILED);
        idem_log(IDEM_LOG_WARN, schedule->late ? "reconcile-late" : "reconcile-failed", fields,
                 IDEM_ARRAY_COUNT(fields));
    }
}

static void on_closed(uv_handle_t *handle)
{
    struct idem_schedule *schedule = handle->data;
    IDEM_ASSERT(schedule->open_handles > 0);
    schedule->open_handles -= 1;
    if (schedule->open_handles == 0) {
        child_done(schedule);
    }
}

static void on_ended(uv_process_t *process, int64_t status, int signal_number)
{
    struct idem_schedule *schedule = process->data;
    schedule->status = signal_number != 0 ? -1 : status;
    uv_close((uv_handle_t *)process, on_closed);
    uv_close((uv_handle_t *)&schedule->timer, on_closed);
}

/* Asks it once. It may end in this moment; then there is nobody to signal, and that is fine. */
static void child_end(struct idem_schedule *schedule)
{
    (void)uv_process_kill(&schedule->process, schedule->asked ? SIGKILL : SIGTERM);
    schedule->asked = true;
}

static void on_out_of_time(uv_timer_t *timer)
{
    struct idem_schedule *schedule = timer->data;
    schedule->late |= !schedule->asked;
    child_end(schedule);
}

/* The child is asked to end after `ms`, and ended KILL_MS later. */
static void timer_start(struct idem_schedule *schedule, int64_t ms)
{
    uv_update_time(schedule->options.loop);
    int rc = uv_timer_start(&schedule->timer, on_out_of_time, (uint64_t)ms, KILL_MS);
    IDEM_ASSERT(rc == 0); /* It has a callback, and is open as long as the process. */
}

/* ---- its output ---- */

static void on_room(uv_handle_t *handle, size_t wished, uv_buf_t *ret_buf)
{
    struct idem_schedule *schedule = handle->data;
    (void)wished; /* There is one room, and it is read before it is filled again. */
    *ret_buf = uv_buf_init(schedule->output_memory, OUTPUT_SIZE);
}

/* Counts the lines by their record: {"record":"difference" or {"record":"total", and so on. */
static void on_output(uv_stream_t *stream, ssize_t size, const uv_buf_t *buf)
{
    struct idem_schedule *schedule = stream->data;
    if (size < 0) {
        uv_close((uv_handle_t *)stream, on_closed);
        return;
    }
    for (ssize_t i = 0; i < size; i++) {
        bool named = schedule->column == RECORD_COLUMN;
        schedule->differences += named && buf->base[i] == 'd' ? 1 : 0;
        schedule->totals += named && buf->base[i] == 't' ? 1 : 0;
        schedule->column = buf->base[i] == '\n' ? 0 : schedule->column + 1;
    }
}

/* ---- its beginning ---- */

/* A file of memory with the bearer; -1: there is none. */
static int bearer_open(const struct idem_schedule *schedule)
{
    int file = memfd_create("idem-reconcile", MFD_CLOEXEC);
    if (file < 0) {
        return -1;
    }
    bool written = fchmod(file, S_IRUSR | S_IWUSR) == 0 &&
                   write(file, schedule->bearer, BEARER_TEXT) == (ssize_t)BEARER_TEXT;
    if (!written) {
        (void)close(file); /* Nothing is in it that anybody needs. */
        return -1;
    }
    return file;
}

struct words {
    char entry[TEXT_MAX];
    char url[TEXT_MAX];
    char from[TEXT_MAX];
    char to[TEXT_MAX];
    char grace[TEXT_MAX];
};

static void date_print(int64_t at_us, char ret_text[TEXT_MAX])
{
    struct idem_buf buf;
    idem_buf_init(&buf, ret_text, TEXT_MAX - 1);
    idem_date_print_rfc3339(at_us, &buf);
    ret_text[buf.len] = '\0';
}

/* The address that the service listens on, as somebody on this machine asks it. */
static void url_print(const char *host, uint16_t port, char ret_text[TEXT_MAX])
{
    const char *shown = host;
    if (strcmp(host, "0.0.0.0") == 0) {
        shown = "127.0.0.1";
    } else if (strcmp(host, "::") == 0) {
        shown = "::1";
    }
    bool is_ipv6 = strchr(shown, ':') != NULL;
    (void)snprintf(ret_text, TEXT_MAX, "http://%s%s%s:%u", is_ipv6 ? "[" : "", shown,
                   is_ipv6 ? "]" : "", (unsigned)port); /* An address, so it fits. */
}

static void words_make(const struct idem_schedule *schedule, uint16_t port, struct words *ret_words)
{
    const struct idem_config_provider *provider = provider_at(schedule, schedule->index);
    int64_t from_us = schedule->end_us - provider->reconciliation.every_us;
    int64_t done_us = schedule->turns[schedule->index].done_us;
    if (done_us > 0 && done_us < from_us) { /* Periods that failed come along with this one. */
        from_us = done_us;
    }
    from_us -= OVERLAP_US;
    int64_t grace_s = provider->reconciliation.grace_us / IDEM_US_PER_SECOND;
    (void)snprintf(ret_words->entry, TEXT_MAX, "%s", provider->entry); /* The limit is less. */
    url_print(schedule->options.config->host, port, ret_words->url);
    date_print(from_us > 0 ? from_us : 0, ret_words->from);
    date_print(schedule->end_us, ret_words->to);
    (void)snprintf(ret_words->grace, TEXT_MAX, grace_s == 0 ? "0" : "%llds",
                   (long long)grace_s); /* It fits. */
}

/* "NAME=value" of the service's own environment, or NULL. */
static char *variable_copy(const char *name, char ret_text[PATH_MAX])
{
    const char *value = getenv(name);
    int len = value == NULL ? -1 : snprintf(ret_text, PATH_MAX, "%s=%s", name, value);
    return len > 0 && len < PATH_MAX ? ret_text : NULL;
}

static int child_spawn(struct idem_schedule *schedule, struct words *words, int bearer)
{
    char directory[PATH_MAX];
    char program[] = "idem";
    char command[] = "reconcile";
    char option_provider[] = "--provider";
    char option_from[] = "--from";
    char option_to[] = "--to";
    char option_grace[] = "--grace";
    char option_url[] = "--url";
    char option_credential[] = "--credential-file";
    char path[] = BEARER_PATH;
    char option_json[] = "--json";
    char option_insecure[] = "--insecure"; /* It is this machine, at whatever address. */
    char *arguments[] = {
        program,           command,   option_provider, words->entry,    option_from, words->from,
        option_to,         words->to, option_grace,    words->grace,    option_url,  words->url,
        option_credential, path,      option_json,     option_insecure, NULL,
    };
    char *environment[] = { variable_copy("TMPDIR", directory), NULL };
    uv_stdio_container_t files[BEARER_FD + 1] = {
        { .flags = UV_IGNORE },
        { .flags = UV_CREATE_PIPE | UV_WRITABLE_PIPE,
          .data.stream = (uv_stream_t *)&schedule->output },
        { .flags = UV_INHERIT_FD, .data.fd = STDERR_FILENO },
        { .flags = UV_INHERIT_FD, .data.fd = bearer },
    };
    const uv_process_options_t options = {
        .exit_cb = on_ended,
        .file = PROGRAM,
        .args = arguments,
        .env = environment,
        .stdio = files,
        .stdio_count = IDEM_ARRAY_COUNT(files),
    };
    return uv_spawn(schedule->options.loop, &schedule->process, &options);
}

static void child_start(struct idem_schedule *schedule, size_t index, int64_t end_us, uint16_t port)
{
    struct words words;
    schedule->index = index;
    schedule->end_us = end_us;
    schedule->status = -1;
    schedule->differences = 0;
    schedule->totals = 0;
    schedule->column = 0;
    schedule->running = true;
    schedule->asked = false;
    schedule->late = false;
    schedule->open_handles = 3;
    schedule->process.data = schedule;
    schedule->output.data = schedule;
    schedule->timer.data = schedule;
    words_make(schedule, port, &words);
    (void)uv_pipe_init(schedule->options.loop, &schedule->output, 0); /* These cannot fail. */
    (void)uv_timer_init(schedule->options.loop, &schedule->timer);
    int bearer = bearer_open(schedule);
    int rc = child_spawn(schedule, &words, bearer);
    if (bearer >= 0) {
        (void)close(bearer); /* The child has its own. */
    }
    if (rc == 0) {
        rc = uv_read_start((uv_stream_t *)&schedule->output, on_room, on_output);
        IDEM_ASSERT(rc == 0); /* It is open and readable. */
        const struct idem_config_provider *provider = provider_at(schedule, index);
        timer_start(schedule, provider->reconciliation.timeout_us / IDEM_US_PER_MS);
        return;
    }
    uv_close((uv_handle_t *)&schedule->process, on_closed);
    uv_close((uv_handle_t *)&schedule->output, on_closed);
    uv_close((uv_handle_t *)&schedule->timer, on_closed);
}

void idem_schedule_look(struct idem_schedule *schedule, uint16_t port)
{
    if (!schedule->any || schedule->running || schedule->stopped) {
        return;
    }
    size_t count = schedule->options.config->provider_count;
    for (size_t i = 1; i <= count; i++) {
        size_t index = (schedule->index + i) % count;
        int64_t end_us = due_end_us(schedule, index);
        if (end_us > 0) {
            child_start(schedule, index, end_us, port);
            return;
        }
    }
}

void idem_schedule_stop(struct idem_schedule *schedule)
{
    /* One that never began, or has ended, has a number that is nobody's or somebody else's. */
    bool lives = schedule->running && !uv_is_closing((uv_handle_t *)&schedule->process);
    if (lives && !schedule->asked) {
        child_end(schedule);
        timer_start(schedule, KILL_MS);
    }
    schedule->stopped = true;
}

bool idem_schedule_idle(const struct idem_schedule *schedule)
{
    return schedule == NULL || !schedule->running;
}

void idem_schedule_destroy(struct idem_schedule *schedule)
{
    if (schedule != NULL) {
        IDEM_ASSERT(idem_schedule_idle(schedule));
        explicit_bzero(schedule, sizeof(*schedule));
        free(schedule);
    }
}
