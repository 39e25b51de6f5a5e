/*
 * json_text.h - whether bytes are one whole JSON text (RFC 8259), for answers of any length.
 *
 * Pure. For "was it cut or harmed", not for reading: what readers differ about is let through, that
 * is repeated names, bytes that are no UTF-8, lone surrogates and a byte order mark. Who wants the
 * meaning reads it with base/json.h, which is strict and needs memory; who only asks whether the
 * end is there, of a server that promises nothing, has idem_http_body_whole(), which looks at
 * brackets and strings and at nothing between them.
 */
#ifndef IDEM_CLIENT_JSON_TEXT_H
#define IDEM_CLIENT_JSON_TEXT_H

#include <stdbool.h>

#include "base/text.h"

#define IDEM_JSON_TEXT_DEPTH_MAX 512 /* Nested deeper it is not called whole. */

bool idem_json_text_is_whole(struct idem_str text);

#endif /* IDEM_CLIENT_JSON_TEXT_H */
