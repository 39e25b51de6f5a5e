/*
 * A journal that has lost something is refused.
 *
 * Goal: whatever takes a committed change away, the next opening says so, because the name that is
 * forgotten would be sent again under a new key; and what has lost nothing is opened.
 *
 * Method: real files. A child begins an intent and dies by SIGKILL, so that the change lies in the
 * log only; then a file is removed, cut, changed or replaced.
 */
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include "unit/client/journal_scene.h"

enum loss {
    LOSS_LOG_REMOVED = 0,
    LOSS_LOG_CUT,
    LOSS_LOG_BIT,
    LOSS_FILE_EMPTY,
    LOSS_FILE_REMOVED,
    LOSS_OLDER_COPY,
    LOSS_NONE
};

static void begin_and_die(const struct scene *scene, int number)
{
    (void)number;
    struct idem_client_journal *journal = journal_open(scene->path);
    struct idem_client_record record = record_make("order-8");
    CHILD_MUST(record_begin(journal, &record) == IDEM_CLIENT_OK);
    (void)kill(getpid(), SIGKILL);
}

static char *file_copy(const char *path, size_t *ret_size)
{
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    char *bytes = malloc(1 << 20);
    assert_non_null(bytes);
    *ret_size = fread(bytes, 1, 1 << 20, file);
    assert_int_equal(fclose(file), 0);
    return bytes;
}

static void file_put(const char *path, const char *bytes, size_t size)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

static void lose(const struct scene *scene, enum loss loss, const char *older, size_t older_size)
{
    char log[128];
    size_t size = 0;
    (void)snprintf(log, sizeof(log), "%s-wal", scene->path);
    char *bytes = file_copy(log, &size);
    assert_true(size > 4096);
    switch (loss) {
    case LOSS_LOG_REMOVED:
        assert_int_equal(unlink(log), 0);
        break;
    case LOSS_LOG_CUT:
        assert_int_equal(truncate(log, 32), 0);
        break;
    case LOSS_LOG_BIT:
        bytes[100] = (char)(bytes[100] ^ 1);
        file_put(log, bytes, size);
        break;
    case LOSS_FILE_EMPTY:
        assert_int_equal(truncate(scene->path, 0), 0);
        assert_int_equal(unlink(log), 0);
        break;
    case LOSS_FILE_REMOVED:
        assert_int_equal(unlink(scene->path), 0);
        assert_int_equal(unlink(log), 0);
        break;
    case LOSS_OLDER_COPY:
        file_put(scene->path, older, older_size);
        assert_int_equal(unlink(log), 0);
        break;
    case LOSS_NONE:
        break;
    }
    free(bytes);
}

static void expect_lost(const struct scene *scene)
{
    struct idem_client_journal *journal = NULL;
    struct idem_client_error error = { .text = "" };
    assert_int_equal(idem_client_journal_open(scene->path, &journal, &error),
                     IDEM_CLIENT_E_JOURNAL);
    if (strstr(error.text, "has lost its last") == NULL) {
        print_error("%s\n", error.text);
        fail();
    }
}

static void a_journal_that_has_lost_a_commit_is_refused(void **state)
{
    const struct scene *scene = *state;
    for (enum loss loss = LOSS_LOG_REMOVED; loss <= LOSS_NONE; loss++) {
        size_t older_size = 0;
        struct idem_client_journal *journal = journal_open(scene->path);
        struct idem_client_record record = record_make("order-7");
        assert_int_equal(record_begin(journal, &record), IDEM_CLIENT_OK);
        idem_client_journal_close(journal);
        char *older = file_copy(scene->path, &older_size);
        assert_int_equal(child_end(child_start(begin_and_die, scene, 0)), -SIGKILL);
        lose(scene, loss, older, older_size);
        free(older);
        if (loss == LOSS_NONE) {
            idem_client_journal_close(journal_open(scene->path));
        } else {
            expect_lost(scene);
        }
        journal_remove(scene);
    }
}

static void one_key_has_one_name(void **state)
{
    const struct scene *scene = *state;
    struct idem_client_journal *journal = journal_open(scene->path);
    struct idem_client_record first = record_make("order-7");
    struct idem_client_record second = record_make("order-8");
    second.key = first.key;
    assert_int_equal(record_begin(journal, &first), IDEM_CLIENT_OK);
    assert_int_equal(record_begin(journal, &second), IDEM_CLIENT_E_MISMATCH);
    second.url = IDEM_STR("http://127.0.0.1/v1/refunds"); /* Keys count within an endpoint. */
    assert_int_equal(record_begin(journal, &second), IDEM_CLIENT_OK);
    idem_client_journal_close(journal);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_journal_that_has_lost_a_commit_is_refused, scene_setup,
                                        scene_teardown),
        cmocka_unit_test_setup_teardown(one_key_has_one_name, scene_setup, scene_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
