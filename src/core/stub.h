/*
 * stub.h - an effect that the provider knows and this store does not: it was made after the backup
 * that this store was restored from.
 *
 * The provider's listing tells effect id, order number and amount. The effect id names the scope,
 * so the claim that comes again under the same key meets its stub and settles from it; another key
 * for the same order, at whatever entry, finds the number taken. Stubs of captures, cancels and
 * refunds have moved their payment's sums already if it is known here and had room (`applied`), or
 * do so when it becomes known. A stub stays until an intent settles from it, also while that intent
 * is parked, and as long as it is there, its intent cannot fail. Pure.
 */
#ifndef IDEM_CORE_STUB_H
#define IDEM_CORE_STUB_H

#include <stdbool.h>
#include <stdint.h>

#include "base/text.h"
#include "core/intent.h"

#define IDEM_PAYMENT_STUBS_MAX 16

struct idem_stub {
    int64_t row; /* The store's handle; 0: absent. */
    struct idem_scope scope;
    enum idem_effect_kind kind;
    struct idem_str effect_id;
    struct idem_str entry;
    struct idem_str account;
    struct idem_str region;
    struct idem_str order_no;          /* Empty: the provider does not say. */
    struct idem_str payment_effect_id; /* Of the payment it acted on; empty: it made one. */
    int64_t amount_minor;
    struct idem_str currency;
    struct idem_str reference;
    int64_t happened_us;
    int64_t found_us;
    bool applied; /* The payment's sums have it: set once, never taken back. */
};

#endif /* IDEM_CORE_STUB_H */
