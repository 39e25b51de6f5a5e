/*
 * Secrets of webhooks, and the head of a post.
 *
 * Goal: what merchants' libraries compute is what we send, under the secret that they were shown;
 * while a rotation's overlap lasts under both, and not a second longer.
 *
 * Method: vectors that the libraries of Standard Webhooks and Svix made (webhook_vectors.def); they
 * also verify what a running service sends (test/webhooks).
 */
#include "outbox/signature.h"

#include "lib/test.h"
#include "outbox/secret.h"

#define SECOND IDEM_US_PER_SECOND
#define HOUR   (3600 * SECOND)

static struct idem_digester *digester;

static int begin(void **state)
{
    (void)state;
    return idem_digester_create(&digester, NULL) == IDEM_OK ? 0 : -1;
}

static int end(void **state)
{
    (void)state;
    idem_digester_destroy(digester);
    return 0;
}

static struct idem_uid uid_from(const char *text)
{
    struct idem_uid uid;
    assert_true(idem_uid_parse(idem_str_from(text), &uid));
    return uid;
}

/* The lines of one post, and the memory that they lie in. */
struct head {
    struct idem_str lines[IDEM_SIGNATURE_LINES_COUNT];
    char memory[IDEM_SIGNATURE_LINES_SIZE];
};

static void sign(struct head *head, const char *effect_secret, const struct idem_signed *what)
{
    const struct idem_signer signer = {
        .digester = digester,
        .effect_secret = idem_str_from(effect_secret),
    };
    struct idem_buf buf;
    idem_buf_init(&buf, head->memory, sizeof(head->memory));
    idem_signature_lines(&signer, what, &buf, head->lines);
    assert_false(buf.full);
}

static void expect_secret(const char *effect_secret,
                          const struct idem_webhook *webhook,
                          const char *expected)
{
    struct idem_digest secret;
    struct idem_buf buf;
    char memory[IDEM_WEBHOOK_SECRET_LEN];
    idem_webhook_secret(digester, idem_str_from(effect_secret), webhook, webhook->generation,
                        &secret);
    idem_buf_init(&buf, memory, sizeof(memory));
    idem_webhook_secret_print(&secret, &buf);
    assert_false(buf.full);
    EXPECT_TEXT(idem_buf_str(&buf), expected);
}

static const struct vector {
    const char *effect_secret;
    const char *webhook;
    uint32_t generation;
    bool overlap;
    const char *message;
    int64_t seconds;
    const char *secret;
    const char *signatures;
    const char *body;
} vectors[] = {
#define VECTOR(...) { __VA_ARGS__ },
#include "webhook_vectors.def"
#undef VECTOR
};

static void a_post_is_signed_as_merchants_libraries_do_it(void **state)
{
    (void)state;
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(vectors); i++) {
        const struct vector *vector = &vectors[i];
        char line[256];
        struct head head;
        const int64_t now_us = vector->seconds * SECOND + 999999; /* Cut, not rounded. */
        const struct idem_webhook webhook = {
            .id = uid_from(vector->webhook),
            .generation = vector->generation,
            .rotated_us = vector->overlap ? now_us - HOUR : 0,
        };
        const struct idem_signed what = {
            .webhook = &webhook,
            .message_id = uid_from(vector->message),
            .now_us = now_us,
            .body = idem_str_from(vector->body),
        };
        if (!vector->overlap && vector->generation > 1) {
            assert_true(now_us - webhook.rotated_us > IDEM_ROTATION_OVERLAP_US);
        }
        expect_secret(vector->effect_secret, &webhook, vector->secret);
        sign(&head, vector->effect_secret, &what);
        (void)snprintf(line, sizeof(line), "webhook-id: msg_%s", vector->message);
        EXPECT_TEXT(head.lines[0], line);
        (void)snprintf(line, sizeof(line), "webhook-timestamp: %lld", (long long)vector->seconds);
        EXPECT_TEXT(head.lines[1], line);
        (void)snprintf(line, sizeof(line), "webhook-signature: %s", vector->signatures);
        EXPECT_TEXT(head.lines[2], line);
    }
}

/* How many signatures a post has so long after the second secret came. */
static size_t signatures_after(uint32_t generation, int64_t passed_us)
{
    struct head head;
    size_t count = 0;
    const int64_t rotated_us = INT64_C(1764400000) * SECOND;
    const struct idem_webhook webhook = {
        .id = uid_from(vectors[0].webhook),
        .generation = generation,
        .rotated_us = rotated_us,
    };
    const struct idem_signed what = {
        .webhook = &webhook,
        .message_id = uid_from(vectors[0].message),
        .now_us = rotated_us + passed_us,
        .body = IDEM_STR("{}"),
    };
    sign(&head, vectors[0].effect_secret, &what);
    for (size_t i = 0; i < head.lines[2].len; i++) {
        count += head.lines[2].data[i] == ',' ? 1 : 0;
    }
    return count;
}

static void the_secret_before_counts_for_a_day(void **state)
{
    (void)state;
    assert_int_equal(signatures_after(2, -SECOND), 2); /* The store's clock is ahead of ours. */
    assert_int_equal(signatures_after(2, 0), 2);
    assert_int_equal(signatures_after(2, 24 * HOUR - 1), 2);
    assert_int_equal(signatures_after(2, 24 * HOUR), 1);
    assert_int_equal(signatures_after(7, HOUR), 2); /* Not the ones before that. */
    assert_int_equal(signatures_after(1, HOUR), 1); /* There was none before. */
}

static void every_webhook_and_generation_has_a_secret_of_its_own(void **state)
{
    (void)state;
    static const char *const ids[] = {
        "0193a1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5b",
        "0193a1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5c",
    };
    struct idem_digest secrets[8];
    size_t count = 0;
    for (size_t id = 0; id < 2; id++) {
        for (uint32_t generation = 1; generation <= 2; generation++) {
            const struct idem_webhook webhook = { .id = uid_from(ids[id]) };
            idem_webhook_secret(digester, IDEM_STR("effect secret one"), &webhook, generation,
                                &secrets[count]);
            idem_webhook_secret(digester, IDEM_STR("effect secret two"), &webhook, generation,
                                &secrets[count + 1]);
            count += 2;
        }
    }
    for (size_t i = 0; i < count; i++) {
        for (size_t j = i + 1; j < count; j++) {
            assert_false(idem_digest_equal(secrets[i], secrets[j]));
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_post_is_signed_as_merchants_libraries_do_it),
        cmocka_unit_test(the_secret_before_counts_for_a_day),
        cmocka_unit_test(every_webhook_and_generation_has_a_secret_of_its_own),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
