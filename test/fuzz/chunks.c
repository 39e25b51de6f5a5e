/*
 * Fuzzes the frame of chunked bodies.
 *
 * The input is one byte (where the text is cut) and the text of a body. Properties, for any bytes:
 *   - verdict and end do not depend on the cut, nor on what stands behind the end;
 *   - DONE means that a second reader, written from RFC 9112, 7.1 line by line, finds the same end
 *     and as many bytes of data, at most what is allowed;
 *   - the data, framed anew as one chunk, is DONE again with the same amount;
 *   - what the second reader calls a whole body is never refused but for its size or its
 *     extensions.
 */
#include "net/chunks.h"

#include <string.h>

#include "fuzz/fuzz.h"

#define BODY_MAX 512

struct scan {
    enum idem_chunks_verdict verdict;
    size_t used;
    uint64_t total;
};

static struct scan scan_cut(struct idem_str text, size_t cut)
{
    struct idem_chunks chunks = { .place = IDEM_CHUNKS_SIZE_FIRST };
    struct scan scan = { .used = 0 };
    size_t used = 0;
    scan.verdict = idem_chunks_scan(&chunks, idem_str_slice(text, 0, cut), BODY_MAX, &used);
    scan.used = used;
    if (scan.verdict == IDEM_CHUNKS_MORE) {
        FUZZ_EXPECT(used == (cut < text.len ? cut : text.len));
        scan.verdict =
            idem_chunks_scan(&chunks, idem_str_slice(text, cut, text.len), BODY_MAX, &used);
        scan.used += used;
    }
    scan.total = chunks.total;
    return scan;
}

/* Takes a line that CRLF ends, without any other CR or LF; false: there is none. */
static bool line_next(struct idem_str *text, struct idem_str *ret_line)
{
    size_t end = idem_str_find(*text, '\n');
    if (end == text->len || end == 0 || text->data[end - 1] != '\r') {
        return false;
    }
    *ret_line = idem_str_slice(*text, 0, end - 1);
    *text = idem_str_slice(*text, end + 1, text->len);
    return idem_str_find(*ret_line, '\r') == ret_line->len;
}

/* The size that a chunk's first line says; false: it says none that fits eight digits. */
static bool size_reread(struct idem_str line, size_t *ret_size)
{
    static const struct idem_str digits = { .data = "0123456789abcdefABCDEF", .len = 22 };
    struct idem_str number = idem_str_slice(line, 0, idem_str_find(line, ';'));
    size_t size = 0;
    for (size_t i = 0; i < number.len; i++) {
        size_t value = idem_str_find(digits, number.data[i]);
        if (value == digits.len || i >= 16 || size > UINT32_MAX) {
            return false;
        }
        size = size * 16 + (value < 16 ? value : value - 6);
    }
    *ret_size = size;
    return number.len > 0;
}

struct body {
    size_t used;
    size_t total;
    bool extended;
};

/* Reads a whole body; false: there is none. */
static bool body_reread(struct idem_str text, struct body *ret_body)
{
    struct idem_str rest = text;
    struct body body = { .used = 0 };
    struct idem_str line;
    size_t size = 1;
    while (size > 0) {
        if (!line_next(&rest, &line) || !size_reread(line, &size) || size > rest.len) {
            return false;
        }
        body.extended = body.extended || idem_str_find(line, ';') < line.len;
        body.total += size;
        rest = idem_str_slice(rest, size, rest.len);
        if (rest.len < 2 || rest.data[0] != '\r' || rest.data[1] != '\n') {
            return false;
        }
        rest = idem_str_slice(rest, 2, rest.len);
    }
    body.used = text.len - rest.len;
    *ret_body = body;
    return true;
}

static void check_framed_anew(uint64_t total)
{
    char memory[BODY_MAX + 64];
    struct idem_buf buf;
    idem_buf_init(&buf, memory, sizeof(memory));
    if (total > 0) {
        idem_buf_printf(&buf, "%zx\r\n", (size_t)total);
        for (uint64_t i = 0; i < total; i++) {
            idem_buf_add_char(&buf, '\r');
        }
        idem_buf_add(&buf, IDEM_STR("\r\n"));
    }
    idem_buf_add(&buf, IDEM_STR("0\r\n\r\n"));
    FUZZ_EXPECT(!buf.full);
    struct scan scan = scan_cut(idem_buf_str(&buf), buf.len / 2);
    FUZZ_EXPECT(scan.verdict == IDEM_CHUNKS_DONE && scan.used == buf.len && scan.total == total);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0) {
        return 0;
    }
    struct idem_str text = { .data = (const char *)data + 1, .len = size - 1 };
    struct body body = { .used = 0 };
    bool whole = body_reread(text, &body);
    struct scan scan = scan_cut(text, text.len);
    struct scan cut = scan_cut(text, data[0] % (text.len + 1));
    FUZZ_EXPECT(scan.verdict == cut.verdict);
    if (scan.verdict == IDEM_CHUNKS_DONE) {
        FUZZ_EXPECT(cut.used == scan.used && cut.total == scan.total);
        FUZZ_EXPECT(whole && body.used == scan.used && body.total == scan.total);
        FUZZ_EXPECT(scan.total <= BODY_MAX);
        FUZZ_EXPECT(scan_cut(idem_str_slice(text, 0, scan.used), 1).verdict == IDEM_CHUNKS_DONE);
        check_framed_anew(scan.total);
    }
    if (whole && scan.verdict != IDEM_CHUNKS_DONE) {
        FUZZ_EXPECT(body.extended ||
                    (scan.verdict == IDEM_CHUNKS_TOO_LARGE && body.total > BODY_MAX));
    }
    return 0;
}
