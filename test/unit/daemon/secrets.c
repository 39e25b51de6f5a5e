/*
 * Secrets: created once for a new store, kept private, never replaced.
 *
 * Goal: no start can leave a store with other secrets than it had, nor use a file that others can
 * read; whoever operates it is told what to do. Method: real files in a directory of its own.
 */
#include "daemon/secrets.h"

#include "base/private_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/test.h"

#define HEX_A "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"
#define HEX_B "ffeeddccbbaa99887766554433221100ffeeddccbbaa99887766554433221100"

struct room {
    char directory[64];
    char secrets[96];
    char store[96];
    struct idem_random random;
};

static int room_open(void **state)
{
    struct room *room = calloc(1, sizeof(*room));
    assert_non_null(room);
    (void)snprintf(room->directory, sizeof(room->directory), "idem-secrets-XXXXXX");
    assert_non_null(mkdtemp(room->directory));
    (void)snprintf(room->secrets, sizeof(room->secrets), "%s/db.secrets", room->directory);
    (void)snprintf(room->store, sizeof(room->store), "%s/db", room->directory);
    idem_random_init_system(&room->random);
    *state = room;
    return 0;
}

static int room_close(void **state)
{
    struct room *room = *state;
    (void)unlink(room->secrets); /* Either may be absent; rmdir tells. */
    (void)unlink(room->store);
    int rc = rmdir(room->directory);
    free(room);
    return rc;
}

static void file_put(const char *path, const char *text, mode_t mode)
{
    int file = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    assert_true(file >= 0);
    assert_int_equal(write(file, text, strlen(text)), (ssize_t)strlen(text));
    assert_int_equal(fchmod(file, mode), 0);
    assert_int_equal(close(file), 0);
}

static enum idem_err room_begin(struct room *room,
                                bool new_store,
                                struct idem_secrets *ret_secrets,
                                struct idem_error *reterr)
{
    const struct idem_secrets_place place = {
        .path = room->secrets,
        .store_path = room->store,
        .new_store = new_store,
    };
    return idem_secrets_open(&place, &room->random, ret_secrets, reterr);
}

static enum idem_err room_read(struct room *room,
                               struct idem_secrets *ret_secrets,
                               struct idem_error *reterr)
{
    return room_begin(room, false, ret_secrets, reterr);
}

static void a_new_store_gets_secrets_once(void **state)
{
    struct room *room = *state;
    struct idem_secrets first;
    struct idem_secrets second;
    struct idem_error error = { "" };
    assert_int_equal(room_read(room, &first, &error), IDEM_OK);

    struct stat status;
    assert_int_equal(stat(room->secrets, &status), 0);
    assert_int_equal(status.st_mode & 07777, 0600);
    assert_int_equal(first.fingerprint_count, 1);
    assert_int_equal(first.fingerprints[0].id, 1);
    assert_memory_not_equal(first.effect, first.fingerprints[0].bytes, IDEM_SECRET_SIZE);

    file_put(room->store, "a store", 0600);
    assert_int_equal(room_read(room, &second, &error), IDEM_OK);
    assert_memory_equal(first.effect, second.effect, IDEM_SECRET_SIZE);
    assert_memory_equal(first.fingerprints[0].bytes, second.fingerprints[0].bytes,
                        IDEM_SECRET_SIZE);
}

/* In a container the next start has the same number. */
static void what_a_start_left_beside_it_does_not_stand_in_the_way(void **state)
{
    struct room *room = *state;
    struct idem_secrets secrets;
    struct idem_error error = { .text = "" };
    const struct idem_secrets_place place = { .path = room->secrets, .store_path = room->store };
    char left[128];
    (void)snprintf(left, sizeof(left), "%s.%ld.new", room->secrets, (long)getpid());
    file_put(left, "effect ", 0600);
    assert_int_equal(idem_secrets_open(&place, &room->random, &secrets, &error), IDEM_OK);
    assert_int_equal(unlink(left), 0);
}

static void a_store_without_its_secrets_is_refused(void **state)
{
    struct room *room = *state;
    struct idem_secrets secrets;
    struct idem_error error = { "" };
    file_put(room->store, "a store", 0600);
    assert_int_equal(room_read(room, &secrets, &error), IDEM_E_SYSTEM);
    assert_non_null(strstr(error.text, "put back the file"));
    assert_int_equal(access(room->secrets, F_OK), -1); /* And nothing was made up. */
}

static void expect_lost_store(struct room *room)
{
    struct idem_secrets secrets;
    struct idem_error error = { "" };
    assert_int_equal(room_read(room, &secrets, &error), IDEM_E_SYSTEM);
    assert_non_null(strstr(error.text, "retries would pay again"));
    assert_non_null(strstr(error.text, "--new-store"));
}

static void secrets_without_their_store_are_refused_until_it_may_begin(void **state)
{
    struct room *room = *state;
    struct idem_secrets first;
    struct idem_secrets second;
    struct idem_error error = { "" };
    assert_int_equal(room_read(room, &first, &error), IDEM_OK);
    expect_lost_store(room); /* Absent, */
    file_put(room->store, "", 0600);
    expect_lost_store(room); /* and empty. */

    assert_int_equal(room_begin(room, true, &second, &error), IDEM_OK);
    assert_memory_equal(first.effect, second.effect, IDEM_SECRET_SIZE);
    assert_int_equal(unlink(room->store), 0);
    assert_int_equal(room_begin(room, true, &second, &error), IDEM_OK);
    assert_memory_equal(first.effect, second.effect, IDEM_SECRET_SIZE);
}

static void a_store_with_content_cannot_begin_anew(void **state)
{
    struct room *room = *state;
    struct idem_secrets secrets;
    struct idem_error error = { "" };
    file_put(room->store, "a store", 0600);
    assert_int_equal(room_begin(room, true, &secrets, &error), IDEM_E_SYSTEM);
    assert_non_null(strstr(error.text, "--new-store: the store"));
    assert_int_equal(access(room->secrets, F_OK), -1); /* And nothing was made up. */
}

static void a_file_that_others_can_read_is_refused(void **state)
{
    struct room *room = *state;
    file_put(room->store, "a store", 0600);
    static const mode_t open_modes[] = { 0640, 0604, 0660, 0620, 0601 };
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(open_modes); i++) {
        struct idem_secrets secrets;
        struct idem_error error = { "" };
        file_put(room->secrets, "effect " HEX_A "\nfingerprint 1 " HEX_B "\n", open_modes[i]);
        assert_int_equal(room_read(room, &secrets, &error), IDEM_E_SYSTEM);
        assert_non_null(strstr(error.text, "chmod 600"));
    }
}

static void the_first_fingerprint_secret_is_the_current_one(void **state)
{
    struct room *room = *state;
    file_put(room->store, "a store", 0600);
    struct idem_secrets secrets;
    struct idem_error error = { "" };
    file_put(room->secrets,
             "# kept\n\nfingerprint 7 " HEX_B "\n  fingerprint 3 " HEX_A "\neffect " HEX_A, 0600);
    assert_int_equal(room_read(room, &secrets, &error), IDEM_OK);
    assert_int_equal(secrets.fingerprint_count, 2);
    assert_int_equal(secrets.fingerprints[0].id, 7);
    assert_int_equal(secrets.fingerprints[0].bytes[0], 0xFF);
    assert_int_equal(secrets.fingerprints[1].id, 3);
    assert_int_equal(secrets.effect[1], 0x11);
}

static void refusal_expect(struct room *room, const char *text, const char *where)
{
    struct idem_secrets secrets;
    struct idem_error error = { "" };
    file_put(room->secrets, text, 0600);
    assert_int_equal(room_read(room, &secrets, &error), IDEM_E_INVALID);
    if (strstr(error.text, where) == NULL) {
        fail_msg("expected '%s' in '%s'", where, error.text);
    }
    assert_null(strstr(error.text, "00112233"));
}

static void what_cannot_be_read_is_refused_without_showing_it(void **state)
{
    struct room *room = *state;
    file_put(room->store, "a store", 0600);
    static const struct {
        const char *text;
        const char *where;
    } table[] = {
        { "", "needs one effect" },
        { "effect " HEX_A "\n", "at least one fingerprint" },
        { "fingerprint 1 " HEX_A "\n", "needs one effect" },
        { "effect " HEX_A "\neffect " HEX_B "\n", ":2: there is one effect" },
        { "effect 0123\n", ":1: a secret is 64" },
        { "effect " HEX_A "00\n", ":1: a secret is 64" },
        { "effect AABBCCDDEEFF0011AABBCCDDEEFF0011AABBCCDDEEFF0011AABBCCDDEEFF0011\n", ":1: " },
        { "# x\nfingerprint 0 " HEX_A "\n", ":2: a fingerprint secret needs a number" },
        { "fingerprint x " HEX_A "\n", ":1: a fingerprint secret needs a number" },
        { "fingerprint 1 " HEX_A "\nfingerprint 1 " HEX_B "\n", ":2: this fingerprint number" },
        { "secret " HEX_A "\n", ":1: a line begins with" },
    };
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(table); i++) {
        refusal_expect(room, table[i].text, table[i].where);
    }
}

static void a_credential_comes_from_one_place(void **state)
{
    struct room *room = *state;
    char credential[IDEM_SECRET_WORD_MAX];
    struct idem_error error = { "" };

    assert_int_equal(idem_secret_word(NULL, NULL, credential, &error), IDEM_OK);
    assert_string_equal(credential, "");

    file_put(room->secrets, "sk_test_1 \nsecond line", 0600);
    assert_int_equal(idem_secret_word(room->secrets, NULL, credential, &error), IDEM_OK);
    assert_string_equal(credential, "sk_test_1");

    file_put(room->secrets, "sk_test_1", 0644);
    assert_int_equal(idem_secret_word(room->secrets, NULL, credential, &error), IDEM_E_SYSTEM);

    assert_int_equal(setenv("IDEM_TEST_CREDENTIAL", "sk_env", 1), 0);
    assert_int_equal(idem_secret_word(NULL, "IDEM_TEST_CREDENTIAL", credential, &error), IDEM_OK);
    assert_string_equal(credential, "sk_env");

    static const char *const unusable[] = { "", "two words", "line\r\nX-Header: 1", "\x7F" };
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(unusable); i++) {
        assert_int_equal(setenv("IDEM_TEST_CREDENTIAL", unusable[i], 1), 0);
        assert_int_equal(idem_secret_word(NULL, "IDEM_TEST_CREDENTIAL", credential, &error),
                         IDEM_E_INVALID);
    }
    assert_int_equal(unsetenv("IDEM_TEST_CREDENTIAL"), 0);
    assert_int_equal(idem_secret_word(NULL, "IDEM_TEST_CREDENTIAL", credential, &error),
                     IDEM_E_INVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_new_store_gets_secrets_once, room_open, room_close),
        cmocka_unit_test_setup_teardown(what_a_start_left_beside_it_does_not_stand_in_the_way,
                                        room_open, room_close),
        cmocka_unit_test_setup_teardown(a_store_without_its_secrets_is_refused, room_open,
                                        room_close),
        cmocka_unit_test_setup_teardown(secrets_without_their_store_are_refused_until_it_may_begin,
                                        room_open, room_close),
        cmocka_unit_test_setup_teardown(a_store_with_content_cannot_begin_anew, room_open,
                                        room_close),
        cmocka_unit_test_setup_teardown(a_file_that_others_can_read_is_refused, room_open,
                                        room_close),
        cmocka_unit_test_setup_teardown(the_first_fingerprint_secret_is_the_current_one, room_open,
                                        room_close),
        cmocka_unit_test_setup_teardown(what_cannot_be_read_is_refused_without_showing_it,
                                        room_open, room_close),
        cmocka_unit_test_setup_teardown(a_credential_comes_from_one_place, room_open, room_close),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
