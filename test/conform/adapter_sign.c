/*
 * Signatures as fixtures make them: of HMAC alone, not with any code of the adapters'.
 */
#include "conform/adapter.h"

#include "base/digest.h"

void adapter_sign_time_and_body(struct idem_digester *digester,
                                struct idem_str secret,
                                int64_t signed_s,
                                struct idem_str body,
                                struct idem_buf *buf)
{
    idem_buf_add(buf, IDEM_STR("t="));
    idem_buf_add_i64(buf, signed_s);
    idem_hmac_begin(digester, secret);
    idem_hmac_add(digester, idem_str_slice(idem_buf_str(buf), 2, SIZE_MAX));
    idem_hmac_add(digester, IDEM_STR("."));
    idem_hmac_add(digester, body);
    struct idem_digest digest = idem_hmac_end(digester);
    idem_buf_add(buf, IDEM_STR(",v1="));
    idem_buf_add_hex(buf, digest.bytes, sizeof(digest.bytes));
}
