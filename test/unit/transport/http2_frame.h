/*
 * http2_frame.h - frames of HTTP/2 (RFC 9113) over blocking TLS, right ones and wrong ones.
 */
#ifndef IDEM_TEST_UNIT_TRANSPORT_HTTP2_FRAME_H
#define IDEM_TEST_UNIT_TRANSPORT_HTTP2_FRAME_H

#include <openssl/ssl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HTTP2_FRAME_MAX 16384

enum http2_frame_type {
    FRAME_DATA = 0,
    FRAME_HEADERS = 1,
    FRAME_RST_STREAM = 3,
    FRAME_SETTINGS = 4,
    FRAME_PING = 6,
    FRAME_GOAWAY = 7,
    FRAME_WINDOW_UPDATE = 8,
    FRAME_CONTINUATION = 9
};

#define FLAG_ACK         0x1
#define FLAG_END_STREAM  0x1
#define FLAG_END_HEADERS 0x4

#define CODE_OK       0x0
#define CODE_INTERNAL 0x2
#define CODE_REFUSED  0x7
#define CODE_CANCEL   0x8
#define CODE_HTTP11   0xd

struct http2_frame {
    uint8_t type;
    uint8_t flags;
    uint32_t stream;
    size_t size;
    uint8_t data[HTTP2_FRAME_MAX];
};

bool http2_read_all(SSL *tls, void *data, size_t size);
bool http2_frame_read(SSL *tls, struct http2_frame *frame);

/* What cannot be written shows in the next read. `said` may be larger than `frame->size`. */
void http2_frame_write(SSL *tls, const struct http2_frame *frame, size_t said);
void http2_number_write(SSL *tls, enum http2_frame_type type, uint32_t stream, uint32_t number);
void http2_goaway_write(SSL *tls, uint32_t last, uint32_t code);

/* A literal that is not put into the table; both parts shorter than 127. */
void http2_field_add(struct http2_frame *frame, const char *name, const char *value);

/* In the order of the network. */
void http2_put_u32(uint8_t *at, uint32_t value);

#endif /* IDEM_TEST_UNIT_TRANSPORT_HTTP2_FRAME_H */
