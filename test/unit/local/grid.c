/*
 * The grid: test/local/grid.txt, asked of the library in both databases. What its lines mean stands
 * at its beginning; the SQL face has a runner of its own (test/local/grid.py).
 *
 * Goal: every operation in every state answers as the grid says, from C too, and the same in both.
 *
 * Method: a case begins with empty tables. Each line is a transaction unless the case opens one.
 * Time passes by moving what is stored. What is told is written as words and compared with those
 * behind the sign: plain ones in order, name=value wherever it stands. The whole grid is walked
 * before anything fails, and each failure names its line.
 *
 *     test-local-grid [FIRST WORDS OF A CASE]
 */
#include <sqlite3.h>

#include "idem/idem.h"
#include "lib/pg_server.h"
#include "lib/test.h"

#if __has_include(<libpq-fe.h>)
#    include <libpq-fe.h>
#    define WITH_POSTGRES true
#else
#    define WITH_POSTGRES false
#endif

#define WORDS_MAX 24
#define CASES_MIN 40
#define NAMES_MAX 16

struct words {
    size_t count;
    char *word[WORDS_MAX];
};

/* An attempt's token, and the record that it is about. */
struct actor {
    struct idem_local_token token;
    char scope[160];
};

struct world {
    struct idem_local local;
    struct pg_server *server; /* NULL: SQLite. */
    bool open;                /* The case has begun a transaction. */
    struct actor actors[26];
    size_t name_count;
    char names[NAMES_MAX][160];
    char ids[NAMES_MAX][37];
    char told[4096];
    struct idem_local_error error;
};

static const char *only; /* Cases that begin so; NULL: all. */

/* --- the databases -------------------------------------------------------------------------- */

static void sqlite_say(struct world *world, const char *sql)
{
    char *text = NULL;
    if (sqlite3_exec(world->local.sqlite, sql, NULL, NULL, &text) != SQLITE_OK) {
        fail_msg("%s: %s", sql, text);
    }
}

static void say(struct world *world, const char *sql)
{
    if (world->server == NULL) {
        sqlite_say(world, sql);
        return;
    }
#if WITH_POSTGRES
    PGresult *result = PQexec(world->local.postgres, sql);
    ExecStatusType status = PQresultStatus(result);
    if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK) {
        fail_msg("%s: %s", sql, PQerrorMessage(world->local.postgres));
    }
    PQclear(result);
#endif
}

/* Each column of a time that is set. */
static void tick(struct world *world, const char *seconds)
{
    static const char *const sqlite[] = { "created_us",  "updated_us", "lease_end_us",
                                          "finished_us", "expires_us", "due_us" };
    static const char *const postgres[] = { "created", "updated", "lease_end", "finished",
                                            "expires" };
    char sql[256];
    const size_t count = world->server == NULL ? 6 : 5;
    for (size_t i = 0; i < count; i++) {
        if (world->server == NULL) {
            (void)snprintf(sql, sizeof(sql),
                           "UPDATE idem_local_records SET %s = %s - %s * 1000000 WHERE %s > 0",
                           sqlite[i], sqlite[i], seconds, sqlite[i]);
        } else {
            (void)snprintf(sql, sizeof(sql),
                           "UPDATE idem.local_records SET %s = %s - interval '%s s'", postgres[i],
                           postgres[i], seconds);
        }
        say(world, sql);
    }
}

static void begin(struct world *world)
{
    say(world, world->server == NULL ? "BEGIN IMMEDIATE" : "BEGIN");
}

/* --- words ---------------------------------------------------------------------------------- */

/* Cuts `line` at its spaces, in place. */
static struct words words_of(char *line)
{
    struct words words = { .count = 0 };
    char *rest = NULL;
    for (char *word = strtok_r(line, " \t\n", &rest); word != NULL;
         word = strtok_r(NULL, " \t\n", &rest)) {
        assert_true(words.count < WORDS_MAX);
        words.word[words.count] = word;
        words.count++;
    }
    return words;
}

/* The value of name=value; NULL: not given. */
static const char *named(const struct words *words, const char *name)
{
    const size_t len = strlen(name);
    for (size_t i = 0; i < words->count; i++) {
        if (strncmp(words->word[i], name, len) == 0 && words->word[i][len] == '=') {
            return words->word[i] + len + 1;
        }
    }
    return NULL;
}

/* The plain word number `index`, counted from zero; NULL: there are fewer. */
static const char *plain(const struct words *words, size_t index)
{
    for (size_t i = 0; i < words->count; i++) {
        if (strchr(words->word[i], '=') != NULL) {
            continue;
        }
        if (index == 0) {
            return words->word[i];
        }
        index--;
    }
    return NULL;
}

static bool has(const struct words *words, const char *wanted)
{
    for (size_t i = 0; i < words->count; i++) {
        if (strcmp(words->word[i], wanted) == 0) {
            return true;
        }
    }
    return false;
}

static void tell(struct world *world, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static void tell(struct world *world, const char *format, ...)
{
    const size_t used = strlen(world->told);
    va_list args;
    va_start(args, format);
    (void)vsnprintf(world->told + used, sizeof(world->told) - used, format, args);
    va_end(args);
}

static const char *shown(const char *text)
{
    return text[0] != '\0' ? text : "-";
}

static const char *verdict_name(enum idem_local_verdict verdict)
{
    static const char *const names[] = { "-", "succeeded", "failed", "executed", "not_executed" };
    return names[verdict];
}

static bool as_told(struct world *world, const struct words *expected)
{
    const struct words told = words_of(world->told);
    size_t index = 0;
    bool holds = true;
    for (size_t i = 0; i < expected->count; i++) {
        const char *word = expected->word[i];
        if (strchr(word, '=') != NULL) {
            holds = holds && has(&told, word);
            continue;
        }
        const char *said = plain(&told, index);
        holds = holds && said != NULL && strcmp(said, word) == 0;
        index++;
    }
    return holds && plain(&told, index) == NULL;
}

/* --- operations ----------------------------------------------------------------------------- */

static int64_t ms_of(const struct words *words, const char *name)
{
    const char *text = named(words, name);
    return text != NULL ? strtoll(text, NULL, 10) * 1000 : 0;
}

static struct idem_local_name name_of(const struct words *words, const char *key)
{
    const char *principal = named(words, "principal");
    const char *endpoint = named(words, "endpoint");
    return (struct idem_local_name){ .size = sizeof(struct idem_local_name),
                                     .principal = principal != NULL ? principal : "p1",
                                     .endpoint = endpoint != NULL ? endpoint : "e1",
                                     .key = key };
}

static struct idem_local_answer answer_of(const struct words *words, size_t from)
{
    const char *body = plain(words, from + 2);
    const bool none = strcmp(body, "-") == 0;
    return (struct idem_local_answer){
        .size = sizeof(struct idem_local_answer),
        .verdict = strcmp(plain(words, from), "failed") == 0 ? IDEM_LOCAL_VERDICT_FAILED
                                                             : IDEM_LOCAL_VERDICT_SUCCEEDED,
        .status = (int)strtol(plain(words, from + 1), NULL, 10),
        .headers = named(words, "headers"),
        .body = none ? NULL : body,
        .body_size = none ? 0 : strlen(body),
        .retention_ms = ms_of(words, "retention"),
    };
}

static struct idem_local_step step_of(const struct words *words, size_t from)
{
    const char *data = plain(words, from + 1);
    return (struct idem_local_step){ .size = sizeof(struct idem_local_step),
                                     .name = plain(words, from),
                                     .data = data,
                                     .data_size = data != NULL ? strlen(data) : 0,
                                     .lease_ms = ms_of(words, "lease") };
}

static struct actor *actor_of(struct world *world, const struct words *words)
{
    const char *name = plain(words, 1);
    assert_true(name[0] >= 'A' && name[0] <= 'Z' && name[1] == '\0');
    return &world->actors[name[0] - 'A'];
}

/* The place of the record's id. */
static char *id_of(struct world *world, const char *scope)
{
    size_t i = 0;
    while (i < world->name_count && strcmp(world->names[i], scope) != 0) {
        i++;
    }
    assert_true(i < NAMES_MAX);
    if (i == world->name_count) {
        assert_true(strlen(scope) < sizeof(world->names[i]));
        memmove(world->names[i], scope, strlen(scope) + 1);
        world->name_count++;
    }
    return world->ids[i];
}

/* "@" is the id, "@:charge" that of an effect of that name. */
static void tell_effect(struct world *world, const char *scope, const char *effect_id)
{
    const char *id = id_of(world, scope);
    if (effect_id[0] == '\0') {
        tell(world, " -");
    } else if (strncmp(effect_id, id, 36) == 0) {
        tell(world, " @%s", effect_id + 36);
    } else {
        tell(world, " another-id:%s", effect_id);
    }
}

static void scope_print(char *ret_text, size_t size, const struct idem_local_name *name)
{
    (void)snprintf(ret_text, size, "%s %s %s", name->principal, name->endpoint, name->key);
}

static void tell_claim(struct world *world,
                       const struct idem_local_record *record,
                       const char *scope)
{
    tell(world, "%s", idem_local_outcome_name(record->outcome));
    if (record->outcome == IDEM_LOCAL_REPLAY) {
        tell(world, " %s %d %s", verdict_name(record->verdict), record->status,
             shown(record->body));
    }
    if (record->outcome == IDEM_LOCAL_EXPIRED) {
        tell(world, " %s", verdict_name(record->verdict));
    }
    if (record->outcome == IDEM_LOCAL_UNKNOWN) {
        tell_effect(world, scope, record->effect_id);
    }
    if (record->outcome == IDEM_LOCAL_IN_PROGRESS) {
        assert_true(record->retry_after_ms >= 1000);
    }
    const bool nothing =
        record->outcome == IDEM_LOCAL_MISMATCH || record->outcome == IDEM_LOCAL_IN_PROGRESS;
    if (nothing && (record->id[0] != '\0' || record->verdict != IDEM_LOCAL_NO_VERDICT ||
                    record->body_size + record->step_data_size + record->fingerprint_size > 0 ||
                    record->status != 0 || record->effect_id[0] != '\0')) {
        tell(world, " and-too-much");
    }
    if (!nothing && strcmp(record->id, id_of(world, scope)) != 0) {
        tell(world, " another-id");
    }
    tell(world, " epoch=%lld step=%s data=%s headers=%s", (long long)record->epoch,
         shown(record->step), shown(record->step_data), shown(record->headers));
}

static enum idem_local_err do_claim(struct world *world, const struct words *words)
{
    const struct idem_local_name name = name_of(words, plain(words, 2));
    const char *fingerprint = plain(words, 3);
    struct actor *actor = actor_of(world, words);
    struct idem_local_record *record = NULL;
    char scope[160];
    scope_print(scope, sizeof(scope), &name);
    enum idem_local_err err =
        idem_local_claim(&world->local,
                         &(struct idem_local_claim){ .size = sizeof(struct idem_local_claim),
                                                     .principal = name.principal,
                                                     .endpoint = name.endpoint,
                                                     .key = name.key,
                                                     .fingerprint = fingerprint,
                                                     .fingerprint_size = strlen(fingerprint),
                                                     .lease_ms = ms_of(words, "lease"),
                                                     .local_only = has(words, "local") },
                         &record, &world->error);
    if (err != IDEM_LOCAL_OK) {
        return err;
    }
    if (record->outcome == IDEM_LOCAL_EXECUTE) {
        actor->token = record->token;
        (void)snprintf(actor->scope, sizeof(actor->scope), "%s", scope);
        if (record->epoch == 1) {
            memcpy(id_of(world, scope), record->id, sizeof(record->id));
        }
    }
    tell_claim(world, record, scope);
    idem_local_record_free(record);
    return IDEM_LOCAL_OK;
}

static enum idem_local_err do_attempt(struct world *world, const struct words *words)
{
    const char *verb = plain(words, 0);
    const struct actor *actor = actor_of(world, words);
    const struct idem_local *local = &world->local;
    const struct idem_local_token *token = &actor->token;
    struct idem_local_result result = { .size = sizeof(result) };
    enum idem_local_err err = IDEM_LOCAL_OK;
    if (strcmp(verb, "dispatch") == 0) {
        err = idem_local_dispatch(local, token, plain(words, 2), &result, &world->error);
    } else if (strcmp(verb, "heartbeat") == 0) {
        err = idem_local_heartbeat(local, token, ms_of(words, "lease"), &result, &world->error);
    } else if (strcmp(verb, "mark") == 0) {
        const struct idem_local_step step = step_of(words, 2);
        err = idem_local_mark(local, token, &step, &result, &world->error);
    } else if (strcmp(verb, "complete") == 0) {
        const struct idem_local_answer answer = answer_of(words, 2);
        err = idem_local_complete(local, token, &answer, &result, &world->error);
    } else {
        assert_string_equal(verb, "release");
        err = idem_local_release(local, token, has(words, "not_executed"), &result, &world->error);
    }
    tell(world, "%s", idem_local_outcome_name(result.outcome));
    if (result.effect_id[0] != '\0') {
        tell_effect(world, actor->scope, result.effect_id);
    }
    return err;
}

static enum idem_local_err do_settle(struct world *world, const struct words *words)
{
    struct idem_local_result result = { .size = sizeof(result) };
    struct idem_local_evidence evidence = {
        .size = sizeof(evidence),
        .name = name_of(words, plain(words, 1)),
        .effect = named(words, "effect"),
        .by = named(words, "by"),
        .reason = named(words, "reason"),
    };
    if (strcmp(plain(words, 2), "executed") == 0) {
        evidence.answer.verdict = IDEM_LOCAL_VERDICT_EXECUTED;
        evidence.step = step_of(words, 3);
    } else if (strcmp(plain(words, 2), "not_executed") == 0) {
        evidence.answer.verdict = IDEM_LOCAL_VERDICT_NOT_EXECUTED;
    } else {
        evidence.answer = answer_of(words, 2);
    }
    enum idem_local_err err = idem_local_settle(&world->local, &evidence, &result, &world->error);
    tell(world, "%s", idem_local_outcome_name(result.outcome));
    return err;
}

static void tell_record(struct world *world, const struct idem_local_record *record)
{
    char status[16] = "-";
    if (record->state == IDEM_LOCAL_SUCCEEDED || record->state == IDEM_LOCAL_FAILED) {
        (void)snprintf(status, sizeof(status), "%d", record->status);
    }
    tell(world, "%s epoch=%lld local=%s effect=%s step=%s data=%s status=%s body=%s headers=%s",
         idem_local_state_name(record->state), (long long)record->epoch,
         record->local_only ? "yes" : "no", shown(record->effect), shown(record->step),
         shown(record->step_data), status, shown(record->body), shown(record->headers));
    tell(world, " verdict=%s by=%s reason=%s", verdict_name(record->verdict),
         shown(record->evidence_by), shown(record->evidence_reason));
    char reason[IDEM_LOCAL_REASON_MAX + 1]; /* As one word. */
    (void)snprintf(reason, sizeof(reason), "%s", shown(record->contradiction_reason));
    for (char *space = strchr(reason, ' '); space != NULL; space = strchr(space, ' ')) {
        *space = '_';
    }
    tell(world, " contradiction=%s contradiction_by=%s contradiction_reason=%s",
         verdict_name(record->contradiction), shown(record->contradiction_by), reason);
}

static enum idem_local_err do_lookup(struct world *world, const struct words *words)
{
    const struct idem_local_name name = name_of(words, plain(words, 1));
    static const struct idem_local_token none = { .bytes = { 0 } };
    struct idem_local_record *record = NULL;
    enum idem_local_err err = idem_local_lookup(&world->local, &name, &record, &world->error);
    if (record == NULL) {
        tell(world, "absent");
        return err;
    }
    char scope[160];
    scope_print(scope, sizeof(scope), &name);
    assert_memory_equal(&record->token, &none, sizeof(none));
    assert_string_equal(record->id, id_of(world, scope));
    assert_string_equal(record->key, name.key);
    tell_record(world, record);
    idem_local_record_free(record);
    return err;
}

static enum idem_local_err do_due(struct world *world, const struct words *words)
{
    const char *limit = plain(words, 1);
    struct idem_local_list *list = NULL;
    enum idem_local_err err = idem_local_due(
        &world->local, limit != NULL ? (int)strtol(limit, NULL, 10) : 100, &list, &world->error);
    if (err != IDEM_LOCAL_OK) {
        return err;
    }
    if (list->count == 0) {
        tell(world, "nothing");
    }
    for (size_t i = 0; i < list->count; i++) {
        const struct idem_local_record *record = list->records[i];
        assert_true(record->since_ms > 0);
        tell(world, "%s:%s%s%s ", record->key, idem_local_state_name(record->state),
             record->step[0] != '\0' ? ":" : "", record->step);
    }
    idem_local_list_free(list);
    return IDEM_LOCAL_OK;
}

static enum idem_local_err do_reap(struct world *world, const struct words *words)
{
    const char *limit = plain(words, 1);
    struct idem_local_reaped reaped = { .size = sizeof(reaped) };
    enum idem_local_err err = idem_local_reap(
        &world->local, limit != NULL ? (int)strtol(limit, NULL, 10) : 100, &reaped, &world->error);
    tell(world, "%d %d", reaped.expired, reaped.deleted);
    return err;
}

static enum idem_local_err do_call(struct world *world, const struct words *words)
{
    static const struct {
        const char *verb;
        enum idem_local_err (*call)(struct world *, const struct words *);
    } calls[] = {
        { "claim", do_claim },   { "dispatch", do_attempt }, { "heartbeat", do_attempt },
        { "mark", do_attempt },  { "complete", do_attempt }, { "release", do_attempt },
        { "settle", do_settle }, { "lookup", do_lookup },    { "due", do_due },
        { "reap", do_reap },
    };
    for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
        if (strcmp(calls[i].verb, plain(words, 0)) == 0) {
            return calls[i].call(world, words);
        }
    }
    fail_msg("no such operation: %s", plain(words, 0));
    return IDEM_LOCAL_E_INVALID;
}

/* --- the walk ------------------------------------------------------------------------------- */

/* True: this line is about time or transactions. */
static bool step_around(struct world *world, const struct words *words)
{
    const char *verb = plain(words, 0);
    if (strcmp(verb, "tick") == 0) {
        tick(world, plain(words, 1));
    } else if (strcmp(verb, "begin") == 0) {
        begin(world);
        world->open = true;
    } else if (strcmp(verb, "commit") == 0 || strcmp(verb, "rollback") == 0) {
        say(world, verb);
        world->open = false;
    } else {
        return false;
    }
    return true;
}

/* Whether the line holds. */
static bool line_walk(struct world *world, char *line)
{
    char *sign = strstr(line, " = ");
    struct words expected = { .count = 0 };
    if (sign != NULL) {
        expected = words_of(sign + 3);
        *sign = '\0';
    }
    const struct words words = words_of(line);
    if (step_around(world, &words)) {
        return true;
    }
    assert_true(expected.count > 0);
    world->told[0] = '\0';
    if (!world->open) {
        begin(world);
    }
    enum idem_local_err err = do_call(world, &words);
    if (!world->open) {
        say(world, err == IDEM_LOCAL_OK ? "COMMIT" : "ROLLBACK");
    }
    char told[sizeof(world->told)];
    memcpy(told, world->told, sizeof(told));
    if (err == IDEM_LOCAL_OK && as_told(world, &expected)) {
        return true;
    }
    print_error("told: %s %s\n", told, err == IDEM_LOCAL_OK ? "" : world->error.text);
    return false;
}

static void case_begin(struct world *world)
{
    if (world->open) {
        say(world, "ROLLBACK");
        world->open = false;
    }
    say(world, world->server == NULL ? "DELETE FROM idem_local_records"
                                     : "DELETE FROM idem.local_records");
    world->name_count = 0;
    memset(world->ids, 0, sizeof(world->ids));
    for (size_t i = 0; i < 26; i++) {
        world->actors[i] = (struct actor){ .token = { .bytes = { 0xff, (uint8_t)i } } };
    }
}

/* 1: it does not hold, and was told so. */
static int line_judge(struct world *world, int number, const char *name, char *line)
{
    char kept[512];
    (void)snprintf(kept, sizeof(kept), "%s", line);
    if (line_walk(world, line)) {
        return 0;
    }
    print_error("grid.txt:%d: case %s\n%s\n", number, name, kept);
    return 1;
}

/* How many lines do not hold. */
static int grid_walk(struct world *world)
{
    const char *path = getenv("IDEM_GRID");
    FILE *file = fopen(path != NULL ? path : "test/local/grid.txt", "r");
    char line[512];
    char name[512] = "";
    int number = 0;
    int cases = 0;
    int bad = 0;
    bool wanted = false;
    assert_non_null(file);
    while (fgets(line, sizeof(line), file) != NULL) {
        number++;
        line[strcspn(line, "#\n")] = '\0';
        if (strncmp(line, "case ", 5) == 0) {
            (void)snprintf(name, sizeof(name), "%s", line + 5);
            wanted = only == NULL || strncmp(name, only, strlen(only)) == 0;
            cases += wanted ? 1 : 0;
            case_begin(world);
        } else if (wanted && line[strspn(line, " \t")] != '\0') {
            bad += line_judge(world, number, name, line);
        }
    }
    (void)fclose(file);
    case_begin(world);
    assert_true(cases >= (only != NULL ? 1 : CASES_MIN));
    return bad;
}

static void the_grid_holds_in_sqlite(void **state)
{
    (void)state;
    struct world world = { .local = { .size = sizeof(world.local) } };
    assert_int_equal(sqlite3_open(":memory:", &world.local.sqlite), SQLITE_OK);
    begin(&world);
    if (idem_local_install(&world.local, &world.error) != IDEM_LOCAL_OK) {
        fail_msg("%s", world.error.text);
    }
    say(&world, "COMMIT");
    int bad = grid_walk(&world);
    assert_int_equal(sqlite3_close(world.local.sqlite), SQLITE_OK);
    assert_int_equal(bad, 0);
}

/* In UTF-16 text is another sequence of bytes; what is told must not be. */
static void the_grid_holds_in_sqlite_in_utf16(void **state)
{
    (void)state;
    struct world world = { .local = { .size = sizeof(world.local) } };
    assert_int_equal(sqlite3_open(":memory:", &world.local.sqlite), SQLITE_OK);
    say(&world, "PRAGMA encoding = 'UTF-16le'");
    begin(&world);
    assert_int_equal(idem_local_install(&world.local, &world.error), IDEM_LOCAL_OK);
    say(&world, "COMMIT");
    int bad = grid_walk(&world);
    assert_int_equal(sqlite3_close(world.local.sqlite), SQLITE_OK);
    assert_int_equal(bad, 0);
}

#if WITH_POSTGRES
static char *file_read(const char *path)
{
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    char *text = calloc(1, 1 << 20);
    assert_non_null(text);
    assert_true(fread(text, 1, (1 << 20) - 1, file) > 0);
    (void)fclose(file);
    return text;
}

static void the_grid_holds_in_postgres(void **state)
{
    (void)state;
    const char *path = getenv("IDEM_SQL");
    struct pg_server server;
    struct world world = { .local = { .size = sizeof(world.local) }, .server = &server };
    pg_server_init(&server);
    pg_server_start(&server, NULL);
    char *sql = file_read(path != NULL ? path : "sql/idem.sql");
    pg_server_say(&server, sql);
    free(sql);
    world.local.postgres = PQconnectdb(server.url);
    assert_int_equal(PQstatus(world.local.postgres), CONNECTION_OK);
    begin(&world);
    if (idem_local_install(&world.local, &world.error) != IDEM_LOCAL_OK) {
        fail_msg("%s", world.error.text);
    }
    say(&world, "COMMIT");
    int bad = grid_walk(&world);
    PQfinish(world.local.postgres);
    pg_server_deinit(&server);
    assert_int_equal(bad, 0);
}
#endif

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_grid_holds_in_sqlite),
        cmocka_unit_test(the_grid_holds_in_sqlite_in_utf16),
#if WITH_POSTGRES
        cmocka_unit_test(the_grid_holds_in_postgres),
#endif
    };
    only = argc > 1 ? argv[1] : NULL;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
