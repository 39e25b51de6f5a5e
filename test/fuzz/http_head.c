/*
 * Fuzzes the head of a request.
 *
 * The input is one byte (where the text is cut) and bytes from a caller. Properties, for any bytes:
 *   - where a head ends, and whether it is bad, does not depend on the cut;
 *   - a head that is taken, written again in the narrowest form, is taken as the same request: so
 *     nobody in front of us who rewrites it can change what we read;
 *   - no value has a control byte but tab, no name is anything but a token, the path begins with a
 *     slash, and there are Host once and at most one of Content-Length and Transfer-Encoding;
 *   - llhttp, which reads the same bytes behind us, finds as many fields and no error.
 */
#include "net/head.h"

#include <llhttp.h>
#include <string.h>

#include "fuzz/fuzz.h"

#define SIZE_TRIED 4096

struct scan {
    enum idem_head_verdict verdict;
    size_t used;
};

static struct scan scan_cut(struct idem_str text, size_t cut)
{
    enum idem_head_place place = IDEM_HEAD_LINE_START;
    struct scan scan = { .used = 0 };
    size_t used = 0;
    scan.verdict = idem_head_scan(&place, idem_str_slice(text, 0, cut), &used);
    scan.used = used;
    if (scan.verdict == IDEM_HEAD_MORE) {
        FUZZ_EXPECT(used == cut);
        scan.verdict = idem_head_scan(&place, idem_str_slice(text, cut, text.len), &used);
        scan.used += used;
    }
    return scan;
}

static void request_print(const struct idem_net_request *request, bool closes, struct idem_buf *buf)
{
    idem_buf_add(buf, request->method);
    idem_buf_add_char(buf, ' ');
    idem_buf_add(buf, request->path);
    idem_buf_add(buf, request->query.data != NULL ? IDEM_STR("?") : IDEM_STR(""));
    idem_buf_add(buf, request->query);
    idem_buf_add(buf, closes ? IDEM_STR(" HTTP/1.0\r\n") : IDEM_STR(" HTTP/1.1\r\n"));
    for (size_t i = 0; i < request->header_count; i++) {
        idem_buf_add(buf, request->headers[i].name);
        idem_buf_add_char(buf, ':');
        idem_buf_add(buf, request->headers[i].value);
        idem_buf_add(buf, IDEM_STR("\r\n"));
    }
    idem_buf_add(buf, IDEM_STR("\r\n"));
    FUZZ_EXPECT(!buf->full);
}

static void check_same(const struct idem_net_request *left, const struct idem_net_request *right)
{
    FUZZ_EXPECT(idem_str_equal(left->method, right->method));
    FUZZ_EXPECT(idem_str_equal(left->path, right->path));
    FUZZ_EXPECT(idem_str_equal(left->query, right->query));
    FUZZ_EXPECT(left->header_count == right->header_count);
    for (size_t i = 0; i < left->header_count; i++) {
        FUZZ_EXPECT(idem_str_equal(left->headers[i].name, right->headers[i].name));
        FUZZ_EXPECT(idem_str_equal(left->headers[i].value, right->headers[i].value));
    }
}

static void check_written(const struct idem_net_request *request,
                          const struct idem_head *head,
                          bool minor_zero)
{
    static struct idem_net_request again;
    static char memory[2 * SIZE_TRIED];
    struct idem_head again_head;
    struct idem_buf buf;
    idem_buf_init(&buf, memory, sizeof(memory));
    request_print(request, minor_zero, &buf);
    struct scan scan = scan_cut(idem_buf_str(&buf), 0);
    FUZZ_EXPECT(scan.verdict == IDEM_HEAD_DONE && scan.used == buf.len);
    FUZZ_EXPECT(idem_head_parse(idem_buf_str(&buf), &again, &again_head) == IDEM_NET_REFUSAL_NONE);
    check_same(&again, request);
    FUZZ_EXPECT(again_head.body_len == head->body_len && again_head.chunked == head->chunked);
    FUZZ_EXPECT(again_head.closes == head->closes && again_head.head_only == head->head_only);
    FUZZ_EXPECT(again_head.expects_continue == head->expects_continue);
}

static size_t fields_named(const struct idem_net_request *request, struct idem_str name)
{
    size_t count = 0;
    for (size_t i = 0; i < request->header_count; i++) {
        count += idem_str_equal_nocase(request->headers[i].name, name) ? 1 : 0;
    }
    return count;
}

static void check_fields(const struct idem_net_request *request,
                         const struct idem_head *head,
                         bool minor_zero)
{
    size_t hosts = fields_named(request, IDEM_STR("host"));
    size_t lengths = fields_named(request, IDEM_STR("content-length"));
    size_t codings = fields_named(request, IDEM_STR("transfer-encoding"));
    FUZZ_EXPECT(hosts == 1 || (minor_zero && hosts == 0));
    FUZZ_EXPECT(lengths + codings <= 1 && head->chunked == (codings == 1));
    FUZZ_EXPECT(head->body_len >= 0 && (lengths == 1 || head->body_len == 0));
    FUZZ_EXPECT(request->path.len > 0 && request->path.data[0] == '/');
    for (size_t i = 0; i < request->header_count; i++) {
        struct idem_str name = request->headers[i].name;
        struct idem_str value = request->headers[i].value;
        FUZZ_EXPECT(name.len > 0 && idem_str_find(name, ' ') == name.len);
        for (size_t k = 0; k < value.len; k++) {
            unsigned char byte = (unsigned char)value.data[k];
            FUZZ_EXPECT((byte >= 0x20 && byte != 0x7F) || byte == '\t');
        }
        FUZZ_EXPECT(idem_str_equal(idem_str_trim(value), value));
    }
}

static size_t llhttp_fields;

static int on_field(llhttp_t *parser)
{
    (void)parser;
    llhttp_fields += 1;
    return 0;
}

static int on_head_complete(llhttp_t *parser)
{
    (void)parser;
    return HPE_PAUSED;
}

/* Methods that llhttp does not know are refused behind us, by the connection. */
static void check_llhttp(struct idem_str text, const struct idem_net_request *request)
{
    llhttp_t parser;
    llhttp_settings_t settings;
    llhttp_settings_init(&settings);
    settings.on_header_value_complete = on_field;
    settings.on_headers_complete = on_head_complete;
    llhttp_init(&parser, HTTP_REQUEST, &settings);
    llhttp_fields = 0;
    enum llhttp_errno rc = llhttp_execute(&parser, text.data, text.len);
    if (rc == HPE_PAUSED || rc == HPE_OK) {
        FUZZ_EXPECT(llhttp_fields == request->header_count);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct idem_net_request request;
    struct idem_head head;
    if (size == 0 || size > SIZE_TRIED) {
        return 0;
    }
    struct idem_str text = { .data = (const char *)data + 1, .len = size - 1 };
    struct scan scan = scan_cut(text, text.len);
    struct scan cut = scan_cut(text, data[0] % (text.len + 1));
    FUZZ_EXPECT(scan.verdict == cut.verdict);
    FUZZ_EXPECT(scan.verdict == IDEM_HEAD_BAD || scan.used == cut.used);
    bool may_begin = idem_head_may_begin(text);
    if (scan.verdict != IDEM_HEAD_DONE || scan.used <= 2) {
        return 0;
    }
    struct idem_str whole = idem_str_slice(text, 0, scan.used);
    if (idem_head_parse(whole, &request, &head) != IDEM_NET_REFUSAL_NONE) {
        return 0;
    }
    size_t line = idem_str_find(whole, '\r');
    bool minor_zero = whole.data[line - 1] == '0';
    FUZZ_EXPECT(may_begin);
    check_fields(&request, &head, minor_zero);
    check_written(&request, &head, minor_zero);
    check_llhttp(whole, &request);
    return 0;
}
