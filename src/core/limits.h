/*
 * limits.h - how long things may be, once. Sizes are bytes of text without a terminator.
 *
 * The edge refuses what is longer before a command exists; stores size their columns by these.
 */
#ifndef IDEM_CORE_LIMITS_H
#define IDEM_CORE_LIMITS_H

#define IDEM_KEY_MAX         255
#define IDEM_PRINCIPAL_MAX   64
#define IDEM_ORDER_NO_MAX    64
#define IDEM_REFUND_NO_MAX   64
#define IDEM_ENTRY_MAX       32 /* Name of a configured provider entry. */
#define IDEM_ACCOUNT_MAX     64
#define IDEM_REGION_MAX      32
#define IDEM_METHOD_MAX      128
#define IDEM_DESCRIPTION_MAX 255
#define IDEM_METADATA_MAX    2048 /* As JSON text. */
#define IDEM_REFERENCE_MAX   128  /* The provider's own transaction number. */
#define IDEM_CODE_MAX        64   /* The provider's refusal code. */
#define IDEM_MESSAGE_MAX     255
#define IDEM_REASON_MAX      255  /* Why a person did something. */
#define IDEM_LABEL_MAX       64   /* What a credential is for. */
#define IDEM_EVENT_ID_MAX    128  /* The provider's name of an event of its own. */
#define IDEM_GRANTS_MAX      1056 /* A credential's provider entries as text. */
#define IDEM_TRACE_MAX       55   /* A traceparent of version 00. */
#define IDEM_EFFECT_ID_LEN   27
#define IDEM_REQUEST_MAX     4096 /* An encoded provider request, without credentials. */
#define IDEM_ANSWER_MAX      6144 /* A stored answer's headers and body together. */
#define IDEM_SENDS_MAX       48   /* Sends of one intent; after that it is only asked about. */
#define IDEM_EVENTS_STEP_MAX 6    /* Events that one decision can write. */

#endif /* IDEM_CORE_LIMITS_H */
