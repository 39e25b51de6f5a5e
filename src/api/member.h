/*
 * member.h - members of a JSON object while it is written. `name` is what stands before the
 * value, as it goes out: ",\"created\":".
 */
#ifndef IDEM_API_MEMBER_H
#define IDEM_API_MEMBER_H

#include <stdint.h>

#include "base/text.h"
#include "base/uid.h"

/* RFC 3339, or null for zero. */
void idem_member_time(struct idem_buf *buf, const char *name, int64_t wall_us);

/* A string, or null for what is empty or is not text. */
void idem_member_text(struct idem_buf *buf, const char *name, struct idem_str text);

/* `path` and the id, or null for zeros. */
void idem_member_link(struct idem_buf *buf, const char *name, const char *path, struct idem_uid id);

void idem_member_number(struct idem_buf *buf, const char *name, int64_t value);

#endif /* IDEM_API_MEMBER_H */
