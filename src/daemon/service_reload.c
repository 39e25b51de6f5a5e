/*
 * What changes without a restart: who may call, how much one principal may take, the bearers that
 * we show to providers, and what their callbacks are signed with. The file is read and checked as
 * at the start, whole or not at all.
 */
#include "daemon/service_internal.h"

#include "daemon/config.h"
#include "daemon/log.h"

size_t idem_service_credentials(
    const struct idem_service *service,
    const struct idem_config *config,
    struct idem_credential ret_credentials[IDEM_CONFIG_CREDENTIALS_MAX + 1])
{
    const struct idem_digest none = { { 0 } };
    const struct idem_digest own = idem_schedule_secret(service->schedule);
    size_t count = idem_parts_credentials(config, ret_credentials);
    if (!idem_digest_equal(own, none)) {
        ret_credentials[count] = (struct idem_credential){
            .secret_sha256 = own,
            .principal = IDEM_STR("service"),
            .is_operator = true,
        };
        count += 1;
    }
    return count;
}

static enum idem_err reload_from(struct idem_service *service,
                                 const struct idem_config *config,
                                 struct idem_error *reterr)
{
    struct idem_credential credentials[IDEM_CONFIG_CREDENTIALS_MAX + 1];
    size_t count = idem_service_credentials(service, config, credentials);
    enum idem_err err = idem_parts_reload(service->parts, config, reterr);
    if (err == IDEM_OK) {
        err = idem_api_reload_credentials(service->api, credentials, count, config->bootstrap,
                                          reterr);
    }
    if (err == IDEM_OK) {
        const struct idem_api_limits limits = idem_parts_limits(config);
        idem_api_reload_limits(service->api, &limits);
    }
    return err;
}

void idem_service_reload(struct idem_service *service)
{
    struct idem_error error;
    struct idem_config *config = NULL;
    enum idem_err err = service->source.load(service->source.context, &config, &error);
    if (err == IDEM_OK) {
        err = reload_from(service, config, &error);
    }
    if (err != IDEM_OK) {
        idem_log(IDEM_LOG_ERROR, "reload-refused", &IDEM_LOG_TEXT("error", error.text), 1);
    } else {
        idem_log(IDEM_LOG_INFO, "reloaded",
                 &IDEM_LOG_NUMBER("credentials", (int64_t)config->credential_count), 1);
    }
    idem_config_destroy(config);
}
