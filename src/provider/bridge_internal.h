/*
 * bridge_internal.h - what the files of the bridge adapter share.
 */
#ifndef IDEM_PROVIDER_BRIDGE_INTERNAL_H
#define IDEM_PROVIDER_BRIDGE_INTERNAL_H

#include "provider/adapter.h"

struct idem_json;

/* The protocol's words. They are wire, so they are written out and not borrowed from core. */
extern const char *const idem_bridge_kind_words[IDEM_EFFECT_KIND_COUNT];

/* A charge or an authorization; the other kinds name the payment that they are about. */
bool idem_bridge_makes_payment(enum idem_effect_kind kind);

/* False: it is there and is not an amount of money. */
bool idem_bridge_amount_read(struct idem_str text, struct idem_str currency, int64_t *ret_minor);

/* bridge_list.c; see struct idem_adapter. */
void idem_bridge_list_request(const struct idem_listing *listing,
                              struct idem_str credential,
                              struct idem_buf *buf,
                              struct idem_wire_request *ret_request);
bool idem_bridge_list_decode(const struct idem_wire_answer *answer, struct idem_listing *listing);

/* bridge_callback.c; see struct idem_adapter. */
extern const struct idem_adapter_callbacks idem_bridge_callbacks;

#endif /* IDEM_PROVIDER_BRIDGE_INTERNAL_H */
