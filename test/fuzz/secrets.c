/*
 * Fuzzes the file of a store's secrets.
 *
 * The input is the text of the file, which lies in memory only. Properties, for any bytes:
 *   - a file is taken exactly if a second reader, written from secrets.h, takes it, and then effect
 *     secret, numbers and fingerprint secrets are those, in that order: a secret that was read
 *     differently would make every old key new to the providers;
 *   - what is refused leaves the result alone, and says why without a byte of any secret;
 *   - the same file with comments and space around its lines has the same secrets.
 */
#include "daemon/secrets.h"

#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"

#include "fuzz/fuzz.h"

#define SIZE_TRIED 4000             /* The reader takes less than 4096. */
#define STORE_PATH "/proc/self/exe" /* There, and not empty: the secrets are not made. */
#define HEX_LEN    ((size_t)2 * IDEM_SECRET_SIZE)

/* Reads `text` as a file of its own. */
static enum idem_err secrets_read(struct idem_str text,
                                  struct idem_secrets *ret_secrets,
                                  struct idem_error *reterr)
{
    char path[64];
    int file = memfd_create("secrets", MFD_CLOEXEC);
    FUZZ_EXPECT(file >= 0 && fchmod(file, S_IRUSR | S_IWUSR) == 0);
    FUZZ_EXPECT(write(file, text.data, text.len) == (ssize_t)text.len);
    (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", file);
    struct idem_secrets_place place = { .path = path, .store_path = STORE_PATH };
    enum idem_err err = idem_secrets_open(&place, NULL, ret_secrets, reterr);
    FUZZ_EXPECT(close(file) == 0);
    return err;
}

/* ---- a second reader ---- */

static bool secret_reread(struct idem_str text, uint8_t *ret_bytes)
{
    static const struct idem_str digits = { .data = "0123456789abcdef", .len = 16 };
    text = idem_str_trim(text);
    for (size_t i = 0; i < text.len && text.len == HEX_LEN; i++) {
        size_t value = idem_str_find(digits, text.data[i]);
        if (value == digits.len) {
            return false;
        }
        ret_bytes[i / 2] = (uint8_t)(i % 2 == 0 ? value * 16 : ret_bytes[i / 2] + value);
    }
    return text.len == HEX_LEN;
}

static bool number_is_new(const struct idem_secrets *secrets, int64_t id)
{
    for (size_t i = 0; i < secrets->fingerprint_count; i++) {
        if (secrets->fingerprints[i].id == id) {
            return false;
        }
    }
    return id >= 1 && id <= UINT32_MAX && secrets->fingerprint_count < 4;
}

static bool line_reread(struct idem_str line, struct idem_secrets *secrets)
{
    int64_t id = 0;
    line = idem_str_trim(line);
    if (line.len == 0 || line.data[0] == '#') {
        return true;
    }
    if (idem_str_starts(line, IDEM_STR("effect ")) && !secrets->has_effect) {
        secrets->has_effect = true;
        return secret_reread(idem_str_slice(line, 7, line.len), secrets->effect);
    }
    if (!idem_str_starts(line, IDEM_STR("fingerprint "))) {
        return false;
    }
    struct idem_str rest = idem_str_slice(line, 12, line.len);
    if (!idem_str_to_i64(idem_str_next(&rest, ' '), &id) || !number_is_new(secrets, id)) {
        return false;
    }
    struct idem_fingerprint_secret *next = &secrets->fingerprints[secrets->fingerprint_count++];
    next->id = (uint32_t)id;
    return secret_reread(rest, next->bytes);
}

static bool file_reread(struct idem_str text, struct idem_secrets *ret_secrets)
{
    *ret_secrets = (struct idem_secrets){ .has_effect = false };
    while (text.len > 0) {
        if (!line_reread(idem_str_next(&text, '\n'), ret_secrets)) {
            return false;
        }
    }
    return ret_secrets->has_effect && ret_secrets->fingerprint_count > 0;
}

/* ---- the properties ---- */

static void check_equal(const struct idem_secrets *left, const struct idem_secrets *right)
{
    FUZZ_EXPECT(left->has_effect && right->has_effect);
    FUZZ_EXPECT(memcmp(left->effect, right->effect, sizeof(left->effect)) == 0);
    FUZZ_EXPECT(left->fingerprint_count == right->fingerprint_count);
    for (size_t i = 0; i < left->fingerprint_count; i++) {
        const struct idem_fingerprint_secret *ours = &left->fingerprints[i];
        FUZZ_EXPECT(ours->id == right->fingerprints[i].id);
        FUZZ_EXPECT(memcmp(ours->bytes, right->fingerprints[i].bytes, IDEM_SECRET_SIZE) == 0);
    }
}

/* Eight bytes in a row of a line that may hold a secret do not stand in the message. */
static void check_silent(struct idem_str text, const struct idem_error *error)
{
    static const size_t seen = 8;
    FUZZ_EXPECT(error->text[0] != '\0');
    while (text.len > 0) {
        struct idem_str line = idem_str_next(&text, '\n');
        char part[16] = "";
        for (size_t i = 0; i + seen <= line.len && line.len >= HEX_LEN; i++) {
            memcpy(part, line.data + i, seen);
            bool digits = strspn(part, "0123456789abcdefABCDEF") == seen;
            FUZZ_EXPECT(!digits || strstr(error->text, part) == NULL);
        }
    }
}

static void check_spaced(struct idem_str text, const struct idem_secrets *secrets)
{
    static char memory[4 * SIZE_TRIED];
    struct idem_secrets again;
    struct idem_error error;
    struct idem_buf buf;
    idem_buf_init(&buf, memory, sizeof(memory));
    idem_buf_add(&buf, IDEM_STR("# effect\n \t\n"));
    while (text.len > 0) {
        idem_buf_add(&buf, IDEM_STR("\t "));
        idem_buf_add(&buf, idem_str_next(&text, '\n'));
        idem_buf_add(&buf, IDEM_STR(" \n#\n"));
    }
    if (!buf.full && buf.len < SIZE_TRIED) {
        FUZZ_EXPECT(secrets_read(idem_buf_str(&buf), &again, &error) == IDEM_OK);
        check_equal(secrets, &again);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct idem_str text = { .data = size == 0 ? "" : (const char *)data, .len = size };
    struct idem_secrets untouched;
    struct idem_secrets secrets;
    struct idem_secrets second;
    struct idem_error error = { .text = "" };
    if (size > SIZE_TRIED) {
        return 0;
    }
    memset(&untouched, 0x5A, sizeof(untouched));
    memcpy(&secrets, &untouched, sizeof(secrets));
    enum idem_err err = secrets_read(text, &secrets, &error);
    FUZZ_EXPECT((err == IDEM_OK) == file_reread(text, &second));
    if (err != IDEM_OK) {
        const uint8_t *left = (const uint8_t *)&secrets; /* Padding, too: nothing was written. */
        FUZZ_EXPECT(memcmp(left, (const uint8_t *)&untouched, sizeof(secrets)) == 0);
        check_silent(text, &error);
        return 0;
    }
    check_equal(&secrets, &second);
    check_spaced(text, &secrets);
    return 0;
}
