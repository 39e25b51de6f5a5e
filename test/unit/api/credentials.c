/*
 * Who may call.
 *
 * Goal: exactly the credentials that count are found, by their secret; a reload replaces the
 * configuration's and nothing else; the number of the store's is bounded, and what did not fit gets
 * in once there is room.
 *
 * Method: a table of its own, with digests made of one byte, so that all of them meet in one place
 * of the index.
 */
#include "api/credentials.h"

#include "base/bug.h"
#include "lib/test.h"

static const struct idem_provider_rules providers[] = {
    { .entry = { "bridge", 6 } },
    { .entry = { "sandbox", 7 } },
};
static const struct idem_rules rules = { .providers = providers, .provider_count = 2 };
static struct idem_credentials table;
static const struct idem_digest bootstrap = { { 9 } };
static const struct idem_digest none = { { 0 } };

/* They differ in the last byte only, which the index does not look at. */
static struct idem_digest digest_of(uint8_t number)
{
    struct idem_digest digest = { 0 };
    digest.bytes[IDEM_DIGEST_SIZE - 1] = number;
    return digest;
}

static struct idem_uid id_of(uint8_t number)
{
    struct idem_uid id = { 0 };
    id.bytes[0] = number;
    return id;
}

static struct idem_credential_row row_of(uint8_t number, struct idem_str principal)
{
    return (struct idem_credential_row){
        .row = number,
        .id = id_of(number),
        .principal = principal,
        .role = IDEM_ROLE_MERCHANT,
        .secret_sha256 = digest_of(number),
        .providers = IDEM_STR("sandbox gone "),
        .label = IDEM_STR("till 1"),
        .created_us = 7,
        .created_by = IDEM_STR("root"),
    };
}

static int setup(void **state)
{
    static const struct idem_api_options options = {
        .rules = &rules,
        .requests_max = 2,
        .credentials_max = 3,
    };
    (void)state;
    assert_int_equal(idem_credentials_init(&table, &options, NULL), IDEM_OK);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    idem_credentials_free(&table);
    return 0;
}

static struct idem_str holder(struct idem_digest digest)
{
    const struct idem_caller *caller = idem_credentials_find(&table, digest);
    return caller == NULL ? IDEM_STR("nobody") : idem_account_principal(caller->account);
}

static struct idem_credential configured(uint8_t number, struct idem_str principal)
{
    static const struct idem_str all[] = { { "*", 1 } };
    return (struct idem_credential){
        .secret_sha256 = digest_of(number),
        .principal = principal,
        .providers = all,
        .provider_count = 1,
    };
}

static void nobody_is_known_before_somebody_is(void **state)
{
    (void)state;
    EXPECT_TEXT(holder(digest_of(1)), "nobody");
    EXPECT_TEXT(holder(digest_of(0)), "nobody");
    assert_true(idem_credentials_may_miss(&table));
    idem_credentials_read_begin(&table);
    assert_true(idem_credentials_may_miss(&table));
    idem_credentials_read_end(&table);
    assert_false(idem_credentials_may_miss(&table));
}

static void the_bootstrap_hash_is_an_operator_until_a_reload_says_otherwise(void **state)
{
    static const struct idem_digest other = { { 8 } };
    (void)state;
    assert_int_equal(idem_credentials_configure(&table, NULL, 0, bootstrap, NULL), IDEM_OK);
    const struct idem_caller *caller = idem_credentials_find(&table, bootstrap);
    assert_non_null(caller);
    assert_int_equal(caller->role, IDEM_ROLE_OPERATOR);
    EXPECT_TEXT(idem_account_principal(caller->account), "bootstrap");
    assert_int_equal(idem_credentials_configure(&table, NULL, 0, other, NULL), IDEM_OK);
    EXPECT_TEXT(holder(bootstrap), "nobody");
    EXPECT_TEXT(holder(other), "bootstrap");
    assert_int_equal(idem_credentials_configure(&table, NULL, 0, none, NULL), IDEM_OK);
    EXPECT_TEXT(holder(other), "nobody");
    EXPECT_TEXT(holder(none), "nobody");
}

static void a_reload_replaces_the_configurations_only(void **state)
{
    (void)state;
    const struct idem_credential first[] = {
        configured(1, IDEM_STR("alice")),
        configured(2, IDEM_STR("bob")),
    };
    const struct idem_credential second[] = { configured(3, IDEM_STR("bob")) };
    assert_int_equal(idem_credentials_configure(&table, first, 2, none, NULL), IDEM_OK);
    const struct idem_credential_row row = row_of(4, IDEM_STR("carol"));
    idem_credentials_put(&table, &row);
    struct idem_account *bob = idem_credentials_find(&table, digest_of(2))->account;

    assert_int_equal(idem_credentials_configure(&table, second, 1, none, NULL), IDEM_OK);
    EXPECT_TEXT(holder(digest_of(1)), "nobody");
    EXPECT_TEXT(holder(digest_of(2)), "nobody");
    EXPECT_TEXT(holder(digest_of(3)), "bob");
    EXPECT_TEXT(holder(digest_of(4)), "carol");
    assert_ptr_equal(idem_credentials_find(&table, digest_of(3))->account, bob);
    assert_true(idem_credentials_find(&table, digest_of(3))->every_provider);
}

static void a_reload_that_is_refused_changes_nothing(void **state)
{
    static struct idem_credential many[IDEM_API_CONFIGURED_MAX];
    (void)state;
    const struct idem_credential good[] = { configured(1, IDEM_STR("alice")) };
    const struct idem_credential bad[] = { configured(2, IDEM_STR("bob")),
                                           configured(3, IDEM_STR("")) };
    assert_int_equal(idem_credentials_configure(&table, good, 1, bootstrap, NULL), IDEM_OK);
    assert_int_equal(idem_credentials_configure(&table, bad, 2, none, NULL), IDEM_E_INVALID);
    assert_int_equal(idem_credentials_configure(&table, many, IDEM_ARRAY_COUNT(many), none, NULL),
                     IDEM_E_LIMIT);
    EXPECT_TEXT(holder(digest_of(1)), "alice");
    EXPECT_TEXT(holder(bootstrap), "bootstrap");
    EXPECT_TEXT(holder(digest_of(2)), "nobody");
}

static void a_stored_credential_counts_until_it_is_removed(void **state)
{
    (void)state;
    struct idem_credential_row row = row_of(1, IDEM_STR("alice"));
    idem_credentials_put(&table, &row);
    idem_credentials_put(&table, &row); /* A page may be read twice. */
    assert_int_equal(table.stored_count, 1);
    const struct idem_caller *caller = idem_credentials_by_id(&table, id_of(1));
    assert_non_null(caller);
    EXPECT_TEXT(idem_caller_label(caller), "till 1");
    EXPECT_TEXT(idem_caller_created_by(caller), "root");
    assert_int_equal(caller->providers, 2); /* sandbox; "gone" is not configured. */
    assert_false(caller->every_provider);

    row = row_of(2, IDEM_STR("alice"));
    row.revoked_us = 1;
    idem_credentials_put(&table, &row);
    EXPECT_TEXT(holder(digest_of(2)), "nobody");

    idem_credentials_remove(&table, id_of(2));
    EXPECT_TEXT(holder(digest_of(1)), "alice");
    idem_credentials_remove(&table, id_of(1));
    EXPECT_TEXT(holder(digest_of(1)), "nobody");
    assert_null(idem_credentials_by_id(&table, id_of(1)));
}

static void removing_one_leaves_the_others_that_meet_it(void **state)
{
    (void)state;
    for (uint8_t i = 1; i <= 3; i++) {
        const struct idem_credential_row row = row_of(i, IDEM_STR("alice"));
        idem_credentials_put(&table, &row);
    }
    idem_credentials_remove(&table, id_of(1));
    EXPECT_TEXT(holder(digest_of(1)), "nobody");
    EXPECT_TEXT(holder(digest_of(2)), "alice");
    EXPECT_TEXT(holder(digest_of(3)), "alice");
}

static void places_are_bounded_and_can_be_kept(void **state)
{
    (void)state;
    idem_credentials_read_end(&table);
    const struct idem_credential_row first = row_of(1, IDEM_STR("alice"));
    const struct idem_credential_row second = row_of(2, IDEM_STR("bob"));
    idem_credentials_put(&table, &first);
    idem_credentials_put(&table, &second);
    assert_true(idem_credentials_promise(&table));
    assert_false(idem_credentials_promise(&table));
    const struct idem_credential_row third = row_of(3, IDEM_STR("carol"));
    const struct idem_credential_row fourth = row_of(4, IDEM_STR("dave"));
    idem_credentials_put(&table, &fourth); /* The place is kept for another. */
    EXPECT_TEXT(holder(digest_of(4)), "nobody");
    table.crowded = false;
    idem_credentials_forgo(&table);
    idem_credentials_put(&table, &third);
    assert_false(idem_credentials_promise(&table));
    assert_false(idem_credentials_may_miss(&table));
    idem_credentials_put(&table, &fourth); /* Of a store that was filled under a higher limit. */
    EXPECT_TEXT(holder(digest_of(4)), "nobody");
    assert_true(idem_credentials_may_miss(&table));
    assert_false(table.again);
}

static void a_revocation_in_a_full_table_has_the_stores_read_again(void **state)
{
    (void)state;
    for (uint8_t i = 1; i <= 4; i++) {
        const struct idem_credential_row row = row_of(i, IDEM_STR("alice"));
        idem_credentials_put(&table, &row);
    }
    idem_credentials_read_end(&table);
    assert_true(table.crowded);
    assert_false(table.again);

    idem_credentials_remove(&table, id_of(2));
    assert_true(table.again);
    idem_credentials_read_begin(&table);
    assert_false(table.again);
    for (uint8_t i = 1; i <= 4; i++) {
        struct idem_credential_row row = row_of(i, IDEM_STR("alice"));
        row.revoked_us = i == 2 ? 1 : 0;
        idem_credentials_put(&table, &row);
    }
    assert_true(idem_credentials_may_miss(&table)); /* There might be more. */
    idem_credentials_read_end(&table);
    assert_false(idem_credentials_may_miss(&table));
    EXPECT_TEXT(holder(digest_of(2)), "nobody");
    EXPECT_TEXT(holder(digest_of(4)), "alice");

    idem_credentials_remove(&table, id_of(4));
    assert_false(table.again);
}

static void one_that_never_fitted_makes_room_as_well(void **state)
{
    (void)state;
    for (uint8_t i = 1; i <= 4; i++) {
        const struct idem_credential_row row = row_of(i, IDEM_STR("alice"));
        idem_credentials_put(&table, &row);
    }
    idem_credentials_read_end(&table);
    uint64_t before = table.removals;
    idem_credentials_remove(&table, id_of(4));
    assert_true(table.again);
    assert_true(table.removals != before); /* A page from before does not count. */
}

static void a_row_that_nobody_here_wrote_does_not_count(void **state)
{
    static const char name[IDEM_PRINCIPAL_MAX + 1] = { 'a' };
    (void)state;
    struct idem_credential_row rows[] = {
        row_of(1, (struct idem_str){ .data = name, .len = sizeof(name) }),
        row_of(2, IDEM_STR("")),
        row_of(3, IDEM_STR("alice")),
    };
    rows[2].id = id_of(0);
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(rows); i++) {
        idem_credentials_put(&table, &rows[i]);
    }
    assert_int_equal(table.stored_count, 0);
    assert_false(table.crowded);
}

static void an_account_outlives_its_credential_while_a_request_is_inside(void **state)
{
    static const struct idem_api_limits unlimited = { 0 };
    int64_t wait_us = 0;
    (void)state;
    const struct idem_credential_row row = row_of(1, IDEM_STR("alice"));
    idem_credentials_put(&table, &row);
    struct idem_account *account = idem_credentials_by_id(&table, id_of(1))->account;
    assert_true(idem_account_enter(account, &unlimited, 1, &wait_us));
    idem_credentials_remove(&table, id_of(1));
    const struct idem_credential_row other = row_of(2, IDEM_STR("bob"));
    idem_credentials_put(&table, &other);
    EXPECT_TEXT(idem_account_principal(account), "alice");
    idem_account_leave(account);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(nobody_is_known_before_somebody_is),
        TEST(the_bootstrap_hash_is_an_operator_until_a_reload_says_otherwise),
        TEST(a_reload_replaces_the_configurations_only),
        TEST(a_reload_that_is_refused_changes_nothing),
        TEST(a_stored_credential_counts_until_it_is_removed),
        TEST(removing_one_leaves_the_others_that_meet_it),
        TEST(places_are_bounded_and_can_be_kept),
        TEST(a_revocation_in_a_full_table_has_the_stores_read_again),
        TEST(one_that_never_fitted_makes_room_as_well),
        TEST(a_row_that_nobody_here_wrote_does_not_count),
        TEST(an_account_outlives_its_credential_while_a_request_is_inside),
    };
    return cmocka_run_group_tests_name("api/credentials", tests, NULL, NULL);
}
