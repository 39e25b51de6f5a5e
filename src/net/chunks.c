/*
 * The frame of a chunked body, byte by byte.
 *
 *     SIZE_FIRST --hex--> SIZE --CR--> SIZE_LF --LF--> DATA --all--> DATA_CR --CR--> DATA_LF
 *         ^                | ;            ^  | size 0                                  | LF
 *         |                v              |  +--> LAST_CR --CR--> LAST_LF --LF--> END  |
 *         |            EXTENSION --CR-----+                                            |
 *         +----------------------------------------------------------------------------+
 *
 * A byte without an arrow is bad. So there is no bare LF, no `0x2`, no sign, no space, no size of
 * more than sixteen digits and no chunk whose data is not ended by CRLF: each of them is read in
 * two ways by two servers, and that is how a request is smuggled.
 *
 * Extensions are read over, within a budget, as the standard demands. Trailer fields are refused:
 * a field that arrives after the decision (a digest, a length) is either believed too late or
 * ignored, and nobody who calls a payment needs one.
 */
#include "net/chunks.h"

#include <stdbool.h>

#include "base/bug.h"

#define SIZE_DIGITS_MAX 16

static int hex_value(char byte)
{
    if (byte >= '0' && byte <= '9') {
        return byte - '0';
    }
    if (byte >= 'a' && byte <= 'f') {
        return byte - 'a' + 10;
    }
    if (byte >= 'A' && byte <= 'F') {
        return byte - 'A' + 10;
    }
    return -1;
}

/* In SIZE_FIRST and SIZE. */
static bool size_step(struct idem_chunks *chunks, char byte)
{
    int value = hex_value(byte);
    if (value >= 0) {
        if (chunks->digits == SIZE_DIGITS_MAX) {
            return false;
        }
        chunks->digits += 1;
        chunks->left = chunks->left * 16 + (uint64_t)value;
        chunks->place = IDEM_CHUNKS_SIZE;
        return true;
    }
    if (chunks->place == IDEM_CHUNKS_SIZE_FIRST || (byte != '\r' && byte != ';')) {
        return false;
    }
    chunks->place = byte == '\r' ? IDEM_CHUNKS_SIZE_LF : IDEM_CHUNKS_EXTENSION;
    return true;
}

static bool extension_step(struct idem_chunks *chunks, char byte)
{
    if (byte == '\r') {
        chunks->place = IDEM_CHUNKS_SIZE_LF;
        return true;
    }
    chunks->extension_bytes += 1;
    bool visible = byte == '\t' || (byte >= 0x20 && byte <= 0x7e);
    return visible && chunks->extension_bytes <= IDEM_CHUNKS_EXTENSION_MAX;
}

/* One byte of the frame; false is bad. */
static bool frame_step(struct idem_chunks *chunks, char byte)
{
    switch (chunks->place) {
    case IDEM_CHUNKS_SIZE_FIRST:
    case IDEM_CHUNKS_SIZE:
        return size_step(chunks, byte);
    case IDEM_CHUNKS_EXTENSION:
        return extension_step(chunks, byte);
    case IDEM_CHUNKS_SIZE_LF:
        chunks->place = chunks->left == 0 ? IDEM_CHUNKS_LAST_CR : IDEM_CHUNKS_DATA;
        return byte == '\n';
    case IDEM_CHUNKS_DATA_CR:
        chunks->place = IDEM_CHUNKS_DATA_LF;
        return byte == '\r';
    case IDEM_CHUNKS_DATA_LF:
        chunks->place = IDEM_CHUNKS_SIZE_FIRST;
        chunks->digits = 0;
        return byte == '\n';
    case IDEM_CHUNKS_LAST_CR:
        chunks->place = IDEM_CHUNKS_LAST_LF;
        return byte == '\r';
    case IDEM_CHUNKS_LAST_LF:
        chunks->place = IDEM_CHUNKS_END;
        return byte == '\n';
    case IDEM_CHUNKS_DATA:
    case IDEM_CHUNKS_END:
        break;
    }
    IDEM_UNREACHABLE();
}

static size_t data_step(struct idem_chunks *chunks, size_t available)
{
    size_t taken = available < chunks->left ? available : (size_t)chunks->left;
    chunks->left -= taken;
    if (chunks->left == 0) {
        chunks->place = IDEM_CHUNKS_DATA_CR;
    }
    return taken;
}

enum idem_chunks_verdict idem_chunks_scan(struct idem_chunks *chunks,
                                          struct idem_str text,
                                          uint64_t body_max,
                                          size_t *ret_used)
{
    IDEM_ASSERT(chunks->place != IDEM_CHUNKS_END);

    size_t used = 0;
    while (used < text.len && chunks->place != IDEM_CHUNKS_END) {
        if (chunks->place == IDEM_CHUNKS_DATA) {
            used += data_step(chunks, text.len - used);
            continue;
        }
        if (!frame_step(chunks, text.data[used])) {
            return IDEM_CHUNKS_BAD;
        }
        used += 1;
        if (chunks->place != IDEM_CHUNKS_DATA) {
            continue;
        }
        if (chunks->left > body_max - chunks->total) {
            return IDEM_CHUNKS_TOO_LARGE;
        }
        chunks->total += chunks->left;
    }
    IDEM_ASSERT(chunks->total <= body_max);
    *ret_used = used;
    return chunks->place == IDEM_CHUNKS_END ? IDEM_CHUNKS_DONE : IDEM_CHUNKS_MORE;
}
