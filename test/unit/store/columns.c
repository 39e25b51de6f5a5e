/*
 * The column tables against the structs they describe.
 *
 * Goal: every member of a row is stored, and none twice. A member that is forgotten would come back
 * as zero after a restart and nobody would notice until it mattered.
 *
 * Method: paint the bytes of each column onto a picture of the struct. No byte may be painted
 * twice, and what stays blank must be padding.
 */
#include "store/columns.h"

#include "core/credential.h"
#include "core/event.h"
#include "core/intent.h"
#include "core/payment.h"
#include "core/stub.h"
#include "core/webhook.h"
#include "lib/test.h"
#include "store/look.h"

#define ROW_MAX 1024

static size_t column_size(enum idem_column_kind kind)
{
    static const size_t sizes[IDEM_COLUMN_KIND_COUNT] = {
        [IDEM_COLUMN_I64] = 8,
        [IDEM_COLUMN_U32] = 4,
        [IDEM_COLUMN_U16] = 2,
        [IDEM_COLUMN_BOOL] = sizeof(bool),
        [IDEM_COLUMN_BYTES_16] = 16,
        [IDEM_COLUMN_BYTES_32] = 32,
        [IDEM_COLUMN_TEXT] = sizeof(struct idem_str),
    };
    assert_true(sizes[kind] > 0);
    return sizes[kind];
}

static void expect_blank(bool painted, const char *name)
{
    if (painted) {
        fail_msg("column %s is stored twice", name);
    }
}

static void paint(bool *picture, const char *name, size_t offset, size_t size)
{
    for (size_t i = offset; i < offset + size; i++) {
        expect_blank(picture[i], name);
        picture[i] = true;
    }
}

/* Bytes that belong to no column. */
static size_t blank_count(const struct idem_table *table, size_t handle_size)
{
    bool picture[ROW_MAX] = { false };
    assert_true(table->row_size <= ROW_MAX);
    paint(picture, "row", 0, handle_size);
    for (size_t i = 0; i < table->column_count; i++) {
        const struct idem_column *column = &table->columns[i];
        paint(picture, column->name, column->offset, column_size(column->kind));
    }
    size_t blank = 0;
    for (size_t i = 0; i < table->row_size; i++) {
        blank += picture[i] ? 0 : 1;
    }
    return blank;
}

static void expect_padding(const struct idem_table *table, size_t blank, size_t padding)
{
    if (blank != padding) {
        fail_msg("%s: %zu bytes belong to no column, padding is %zu", table->name, blank, padding);
    }
}

static void every_member_is_stored_once(void **state)
{
    (void)state;
    /* The padding of each struct on 64 bits (pahole): a member that is not painted adds to it. */
    static const struct {
        const struct idem_table *table;
        size_t handle_size;
        size_t padding;
    } cases[] = {
        { &idem_table_intents, 8, 25 }, { &idem_table_payments, 8, 11 },
        { &idem_table_refunds, 8, 0 },  { &idem_table_sends, 0, 4 },
        { &idem_table_events, 0, 0 },   { &idem_table_cases, 0, 4 },
        { &idem_table_stubs, 8, 11 },   { &idem_table_credentials, 8, 4 },
        { &idem_table_places, 0, 0 },   { &idem_table_webhooks, 8, 8 },
        { &idem_table_messages, 8, 4 }, { &idem_table_deliveries, 8, 10 },
        { &idem_table_effects, 8, 0 },
    };
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(cases); i++) {
        size_t blank = blank_count(cases[i].table, cases[i].handle_size);
        expect_padding(cases[i].table, blank, cases[i].padding);
    }
}

static void text_is_measured_and_moved(void **state)
{
    (void)state;
    char memory[64];
    struct idem_buf buf;
    struct idem_refund refund = { .principal = IDEM_STR("abc"), .failure_code = IDEM_STR("de") };
    idem_buf_init(&buf, memory, sizeof(memory));
    assert_int_equal(idem_table_text_size(&idem_table_refunds, &refund), 5);
    idem_table_text_keep(&idem_table_refunds, &refund, &buf);
    assert_ptr_equal(refund.principal.data, memory);
    EXPECT_TEXT(refund.principal, "abc");
    EXPECT_TEXT(refund.failure_code, "de");
    EXPECT_TEXT(refund.refund_no, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_member_is_stored_once),
        cmocka_unit_test(text_is_measured_and_moved),
    };
    return cmocka_run_group_tests_name("store columns", tests, NULL, NULL);
}
