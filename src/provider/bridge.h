/*
 * bridge.h - the adapter for idem's own provider protocol, docs/bridge.md.
 */
#ifndef IDEM_PROVIDER_BRIDGE_H
#define IDEM_PROVIDER_BRIDGE_H

#include "provider/adapter.h"

extern const struct idem_adapter idem_bridge_adapter;

#endif /* IDEM_PROVIDER_BRIDGE_H */
