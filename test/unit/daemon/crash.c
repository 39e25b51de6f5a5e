/*
 * Crash points: a process dies at the named place, at the right turn, and nowhere else.
 *
 * Goal: crash tests can trust that the process was killed exactly there, by SIGKILL, without
 * flushing anything. Method: a child arms a setting, walks over the points and tells by a pipe
 * which ones it has left behind it; the parent reads how far it came and how it ended.
 */
#include "base/crash.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/test.h"

struct ending {
    char passed[16]; /* One letter for each point that was survived. */
    bool killed;
};

static void walk(int pipe_end, const char *setting)
{
    if (idem_crash_arm(setting, NULL) != IDEM_OK) {
        _exit(9);
    }
    static const char *const points[] = { "a", "b", "a", "b", "a" };
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(points); i++) {
        idem_crash_point(points[i]);
        if (write(pipe_end, points[i], 1) != 1) {
            _exit(8);
        }
    }
    _exit(0);
}

static struct ending child_run(const char *setting)
{
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        walk(ends[1], setting);
    }
    (void)close(ends[1]);

    struct ending ending = { .killed = false };
    size_t used = 0;
    ssize_t got = 0;
    do {
        got = read(ends[0], ending.passed + used, sizeof(ending.passed) - 1 - used);
        used += got > 0 ? (size_t)got : 0;
    } while (got > 0);
    (void)close(ends[0]);

    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    ending.killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
    assert_true(ending.killed || (WIFEXITED(status) && WEXITSTATUS(status) == 0));
    return ending;
}

static void dies_at_the_named_turn(void **state)
{
    (void)state;
    static const struct {
        const char *setting;
        const char *passed;
        bool killed;
    } table[] = {
        { "a", "", true },          { "b", "a", true },      { "a:2", "ab", true },
        { "b:2", "aba", true },     { "a:3", "abab", true }, { "a:4", "ababa", false },
        { "c", "ababa", false },    { "", "ababa", false },  { NULL, "ababa", false },
        { "aa:1", "ababa", false },
    };
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(table); i++) {
        struct ending ending = child_run(table[i].setting);
        assert_string_equal(ending.passed, table[i].passed);
        assert_int_equal(ending.killed, table[i].killed);
    }
}

static void refuses_what_it_cannot_read(void **state)
{
    (void)state;
    static const char *const wrong[] = {
        ":1",
        "a:",
        "a:0",
        "a:x",
        "a:-1",
        "a:1:2",
        "a:99999999999999999999",
        "0123456789012345678901234567890123456789012345678901234567890123456789",
    };
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(wrong); i++) {
        struct idem_error error = { "" };
        assert_int_equal(idem_crash_arm(wrong[i], &error), IDEM_E_INVALID);
        assert_true(error.text[0] != '\0');
        assert_false(idem_crash_armed);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dies_at_the_named_turn),
        cmocka_unit_test(refuses_what_it_cannot_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
