/*
 * Threads that signals pass by.
 *
 * Goal: a thread that was started here never handles a signal, and the one that started it handles
 * the same ones as before.
 */
#include "base/thread.h"

#include <signal.h>

#include "lib/test.h"

struct seen {
    sigset_t mask;
};

static void *look(void *argument)
{
    struct seen *seen = argument;
    assert_int_equal(pthread_sigmask(SIG_SETMASK, NULL, &seen->mask), 0);
    return NULL;
}

static void blocks_every_signal_and_gives_back_the_mask(void **state)
{
    (void)state;
    sigset_t usual;
    (void)sigemptyset(&usual);
    (void)sigaddset(&usual, SIGUSR2);
    sigset_t before;
    assert_int_equal(pthread_sigmask(SIG_SETMASK, &usual, &before), 0);

    struct seen seen = { 0 };
    pthread_t thread;
    assert_int_equal(idem_thread_start(&thread, "idem-test", look, &seen), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_true(sigismember(&seen.mask, SIGTERM));
    assert_true(sigismember(&seen.mask, SIGHUP));
    assert_true(sigismember(&seen.mask, SIGALRM));

    sigset_t after;
    assert_int_equal(pthread_sigmask(SIG_SETMASK, &before, &after), 0);
    assert_true(sigismember(&after, SIGUSR2));
    assert_false(sigismember(&after, SIGTERM));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_every_signal_and_gives_back_the_mask),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
