/*
 * What changes without a restart: who may call, how much one principal may take, and the bearers
 * that we show to providers. The file is read and checked as at the start, whole or not at all.
 */
#include "daemon/service_internal.h"

#include "daemon/config.h"
#include "daemon/log.h"

static enum idem_err reload_from(struct idem_service *service,
                                 const struct idem_config *config,
                                 struct idem_error *reterr)
{
    struct idem_credential credentials[IDEM_CONFIG_CREDENTIALS_MAX];
    size_t count = idem_parts_credentials(config, credentials);
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
