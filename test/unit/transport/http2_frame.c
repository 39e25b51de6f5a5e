/*
 * Frames by hand: a head of nine bytes, and what follows it.
 */
#include "unit/transport/http2_frame.h"

#include <arpa/inet.h>
#include <string.h>

#include "base/bug.h"

#define HEAD_SIZE 9

bool http2_read_all(SSL *tls, void *data, size_t size)
{
    uint8_t *at = data;
    while (size > 0) {
        int got = SSL_read(tls, at, (int)size);
        if (got <= 0) {
            return false;
        }
        at += got;
        size -= (size_t)got;
    }
    return true;
}

void http2_put_u32(uint8_t *at, uint32_t value)
{
    value = htonl(value);
    memcpy(at, &value, sizeof(value));
}

bool http2_frame_read(SSL *tls, struct http2_frame *frame)
{
    uint8_t head[HEAD_SIZE];

    if (!http2_read_all(tls, head, sizeof(head))) {
        return false;
    }
    frame->size = (size_t)head[0] << 16 | (size_t)head[1] << 8 | head[2];
    frame->type = head[3];
    frame->flags = head[4];
    frame->stream = (uint32_t)(head[5] & 0x7f) << 24 | (uint32_t)head[6] << 16 |
                    (uint32_t)head[7] << 8 | head[8];
    IDEM_ASSERT(frame->size <= HTTP2_FRAME_MAX);
    return http2_read_all(tls, frame->data, frame->size);
}

void http2_frame_write(SSL *tls, const struct http2_frame *frame, size_t said)
{
    uint8_t bytes[HEAD_SIZE + 256] = { (uint8_t)(said >> 16), (uint8_t)(said >> 8), (uint8_t)said,
                                       frame->type, frame->flags };

    IDEM_ASSERT(frame->size <= sizeof(bytes) - HEAD_SIZE);
    http2_put_u32(bytes + 5, frame->stream);
    memcpy(bytes + HEAD_SIZE, frame->data, frame->size);
    (void)SSL_write(tls, bytes, (int)(HEAD_SIZE + frame->size));
}

void http2_number_write(SSL *tls, enum http2_frame_type type, uint32_t stream, uint32_t number)
{
    struct http2_frame frame = { .type = (uint8_t)type, .stream = stream, .size = 4 };
    http2_put_u32(frame.data, number);
    http2_frame_write(tls, &frame, frame.size);
}

void http2_goaway_write(SSL *tls, uint32_t last, uint32_t code)
{
    struct http2_frame frame = { .type = FRAME_GOAWAY, .size = 8 };
    http2_put_u32(frame.data, last);
    http2_put_u32(frame.data + 4, code);
    http2_frame_write(tls, &frame, frame.size);
}

void http2_field_add(struct http2_frame *frame, const char *name, const char *value)
{
    size_t name_len = strlen(name);
    size_t value_len = strlen(value);
    uint8_t *at = frame->data + frame->size;

    *at++ = 0x00;
    *at++ = (uint8_t)name_len;
    memcpy(at, name, name_len);
    at += name_len;
    *at++ = (uint8_t)value_len;
    memcpy(at, value, value_len);
    frame->size += 3 + name_len + value_len;
}
