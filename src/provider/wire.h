/*
 * wire.h - what adapters share: a header of a request, a text of an answer in JSON or cut.
 */
#ifndef IDEM_PROVIDER_WIRE_H
#define IDEM_PROVIDER_WIRE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/json.h"
#include "base/text.h"
#include "provider/adapter.h"

/* `name` with its colon and space. The line is kept in `buf`; there is room for one more. */
void idem_wire_header_add(struct idem_wire_request *request,
                          struct idem_buf *buf,
                          const char *name,
                          struct idem_str value);

/*
 * The value at `index`; 0 is absent. False: it is there and is not text. Absent and null leave
 * `*ret_text` alone.
 */
bool idem_wire_text_read(const struct idem_json *json,
                         size_t index,
                         struct idem_buf *buf,
                         struct idem_str *ret_text);

/* At most `max` bytes, and no half character at the end. */
struct idem_str idem_wire_text_cut(struct idem_str text, size_t max);

#endif /* IDEM_PROVIDER_WIRE_H */
