/*
 * header.h - finding header fields of a request, and the few grammars they share.
 */
#ifndef IDEM_API_HEADER_H
#define IDEM_API_HEADER_H

#include <stdbool.h>
#include <stddef.h>

#include "base/text.h"
#include "net/server.h"

/*
 * Puts the first field `name` into `*ret_value` (empty if absent) and returns how many there are.
 * Names compare without case (RFC 9110, 5.1).
 */
size_t idem_header_find(const struct idem_net_request *request,
                        struct idem_str name,
                        struct idem_str *ret_value);

/* A character of a token (RFC 9110, 5.6.2). */
bool idem_header_is_token_char(char byte);

/*
 * Takes the next list member off `*text`: up to the next comma that stands outside a quoted string,
 * trimmed. False when nothing is left.
 */
bool idem_header_list_next(struct idem_str *text, struct idem_str *ret_member);

#endif /* IDEM_API_HEADER_H */
