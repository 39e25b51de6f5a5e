/*
 * The head of a request, from its raw bytes.
 *
 * llhttp reads the same bytes afterwards, and both must agree. This reader exists because a caller
 * behind a proxy must not be able to say one thing to the proxy and another to us, and llhttp
 * forgives what proxies disagree about: folded lines, spaces in names, absent or several Host
 * fields. The grammar here is the narrow one of RFC 9112:
 *
 *     method SP target SP HTTP/1.(0|1) CRLF *( token ":" OWS text OWS CRLF ) CRLF
 *
 * The target is origin-form: a '/' and visible ASCII, no '#'. Absolute-form is for proxies, and the
 * authority in it would have to be weighed against Host. A value has no control byte but tab. Host
 * stands once (in 1.0 at most once) and is not empty. At most one Content-Length, digits only; at
 * most one Transfer-Encoding, never beside Content-Length, never in 1.0, and only `chunked`.
 */
#include "net/head.h"

#include "base/bug.h"

/* Fields whose number or value decides how the message is read. */
struct tally {
    size_t hosts;
    size_t lengths;
    size_t codings;
    struct idem_str length;
    struct idem_str coding;
    bool host_valid;
    bool minor_zero; /* HTTP/1.0 */
};

/* A byte that may stand in a line: visible, space, tab, or above ASCII. */
static bool is_text(char byte)
{
    unsigned char value = (unsigned char)byte;
    return (value >= 0x20 && value != 0x7f) || value == '\t';
}

static bool is_alnum(char byte)
{
    return (byte >= '0' && byte <= '9') || (byte >= 'a' && byte <= 'z') ||
           (byte >= 'A' && byte <= 'Z');
}

static bool is_one_of(char byte, struct idem_str set)
{
    return idem_str_find(set, byte) < set.len;
}

/* tchar of RFC 9110, 5.6.2. */
static bool is_token(char byte)
{
    return is_alnum(byte) || byte == '-' || is_one_of(byte, IDEM_STR("_!#$%&'*+.^`|~"));
}

static bool all_tokens(struct idem_str text)
{
    for (size_t i = 0; i < text.len; i++) {
        if (!is_token(text.data[i])) {
            return false;
        }
    }
    return text.len > 0;
}

static bool host_is_valid(struct idem_str host)
{
    for (size_t i = 0; i < host.len; i++) {
        if (!is_alnum(host.data[i]) && !is_one_of(host.data[i], IDEM_STR(".:-_~[]%!$&'()*+;="))) {
            return false;
        }
    }
    return host.len > 0;
}

static bool scan_step(enum idem_head_place *place, char byte)
{
    switch (*place) {
    case IDEM_HEAD_LINE_START:
    case IDEM_HEAD_LINE:
        if (byte == '\r') {
            *place = *place == IDEM_HEAD_LINE ? IDEM_HEAD_LINE_CR : IDEM_HEAD_LAST_CR;
            return true;
        }
        *place = IDEM_HEAD_LINE;
        return is_text(byte);
    case IDEM_HEAD_LINE_CR:
        *place = IDEM_HEAD_LINE_START;
        return byte == '\n';
    case IDEM_HEAD_LAST_CR:
        *place = IDEM_HEAD_END;
        return byte == '\n';
    case IDEM_HEAD_END:
        break;
    }
    IDEM_UNREACHABLE();
}

enum idem_head_verdict idem_head_scan(enum idem_head_place *place,
                                      struct idem_str text,
                                      size_t *ret_used)
{
    IDEM_ASSERT(*place != IDEM_HEAD_END);

    for (size_t i = 0; i < text.len; i++) {
        if (*place == IDEM_HEAD_LINE && is_text(text.data[i])) {
            continue; /* Nearly every byte. */
        }
        if (!scan_step(place, text.data[i])) {
            return IDEM_HEAD_BAD;
        }
        if (*place == IDEM_HEAD_END) {
            *ret_used = i + 1;
            return IDEM_HEAD_DONE;
        }
    }
    *ret_used = text.len;
    return IDEM_HEAD_MORE;
}

/* Takes the next line without its CRLF off `*text`. There is one: the head was scanned. */
static struct idem_str line_next(struct idem_str *text)
{
    struct idem_str line = idem_str_next(text, '\r');
    *text = idem_str_slice(*text, 1, text->len);
    return line;
}

static bool target_parse(struct idem_str target, struct idem_net_request *request)
{
    if (target.len == 0 || target.data[0] != '/') {
        return false;
    }
    for (size_t i = 0; i < target.len; i++) {
        if (target.data[i] <= 0x20 || target.data[i] > 0x7e || target.data[i] == '#') {
            return false;
        }
    }
    request->path = idem_str_next(&target, '?');
    request->query = target;
    return true;
}

static bool request_line_parse(struct idem_str line,
                               struct idem_net_request *request,
                               bool *ret_minor_zero)
{
    request->method = idem_str_next(&line, ' ');
    struct idem_str target = idem_str_next(&line, ' ');
    if (!all_tokens(request->method) || !target_parse(target, request)) {
        return false;
    }
    *ret_minor_zero = idem_str_equal(line, IDEM_STR("HTTP/1.0"));
    return *ret_minor_zero || idem_str_equal(line, IDEM_STR("HTTP/1.1"));
}

bool idem_head_may_begin(struct idem_str text)
{
    struct idem_str line = idem_str_next(&text, '\r');
    if (text.data == NULL) {
        return true;
    }
    struct idem_net_request request;
    bool minor_zero = false;
    return request_line_parse(line, &request, &minor_zero);
}

static bool list_has(struct idem_str list, struct idem_str token)
{
    while (list.data != NULL) {
        if (idem_str_equal_nocase(idem_str_trim(idem_str_next(&list, ',')), token)) {
            return true;
        }
    }
    return false;
}

static void field_weigh(struct idem_net_header field, struct tally *tally, struct idem_head *head)
{
    if (idem_str_equal_nocase(field.name, IDEM_STR("Host"))) {
        tally->hosts += 1;
        tally->host_valid = host_is_valid(field.value);
    } else if (idem_str_equal_nocase(field.name, IDEM_STR("Content-Length"))) {
        tally->lengths += 1;
        tally->length = field.value;
    } else if (idem_str_equal_nocase(field.name, IDEM_STR("Transfer-Encoding"))) {
        tally->codings += 1;
        tally->coding = field.value;
    } else if (idem_str_equal_nocase(field.name, IDEM_STR("Connection"))) {
        head->closes = head->closes || list_has(field.value, IDEM_STR("close"));
    } else if (idem_str_equal_nocase(field.name, IDEM_STR("Expect"))) {
        head->expects_continue = idem_str_equal_nocase(field.value, IDEM_STR("100-continue"));
    }
}

/* A folded line begins with white space, which is no name: refused like any other bad name. */
static bool field_parse(struct idem_str line, struct idem_net_header *ret_field)
{
    size_t colon = idem_str_find(line, ':');
    if (colon == line.len) {
        return false;
    }
    ret_field->name = idem_str_slice(line, 0, colon);
    ret_field->value = idem_str_trim(idem_str_slice(line, colon + 1, line.len));
    return all_tokens(ret_field->name);
}

static enum idem_net_refusal framing_decide(const struct tally *tally, struct idem_head *head)
{
    bool host_needed = !tally->minor_zero;
    if (tally->hosts > 1 || (host_needed && tally->hosts == 0)) {
        return IDEM_NET_BAD_REQUEST;
    }
    if (tally->hosts == 1 && !tally->host_valid) {
        return IDEM_NET_BAD_REQUEST;
    }
    if (tally->lengths + tally->codings > 1) {
        return IDEM_NET_BAD_REQUEST;
    }
    if (tally->codings == 1) {
        if (tally->minor_zero) {
            return IDEM_NET_BAD_REQUEST;
        }
        head->chunked = idem_str_equal_nocase(tally->coding, IDEM_STR("chunked"));
        return head->chunked ? IDEM_NET_REFUSAL_NONE : IDEM_NET_NOT_SUPPORTED;
    }
    if (tally->lengths == 1 && !idem_str_to_i64(tally->length, &head->body_len)) {
        return IDEM_NET_BAD_REQUEST;
    }
    return IDEM_NET_REFUSAL_NONE;
}

enum idem_net_refusal idem_head_parse(struct idem_str text,
                                      struct idem_net_request *request,
                                      struct idem_head *ret_head)
{
    struct tally tally = { 0 };
    *ret_head = (struct idem_head){ 0 };

    if (!request_line_parse(line_next(&text), request, &tally.minor_zero)) {
        return IDEM_NET_BAD_REQUEST;
    }
    ret_head->head_only = idem_str_equal(request->method, IDEM_STR("HEAD"));
    ret_head->closes = tally.minor_zero;

    request->header_count = 0;
    for (struct idem_str line = line_next(&text); line.len > 0; line = line_next(&text)) {
        struct idem_net_header field;
        if (!field_parse(line, &field)) {
            return IDEM_NET_BAD_REQUEST;
        }
        if (request->header_count == IDEM_NET_HEADERS_MAX) {
            return IDEM_NET_HEAD_TOO_LARGE;
        }
        request->headers[request->header_count++] = field;
        field_weigh(field, &tally, ret_head);
    }
    IDEM_ASSERT(text.len == 0);

    if (tally.minor_zero) {
        ret_head->expects_continue = false; /* RFC 9110, 10.1.1: not from a 1.0 caller. */
    }
    return framing_decide(&tally, ret_head);
}
