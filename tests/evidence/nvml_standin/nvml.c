/* A stand-in for libnvidia-ml.so.1: as much of NVML as the GPU reader calls, answered from a file.
 *
 * The file named by NVML_STANDIN holds lines `key=value`. Keys of a device are prefixed by its
 * index (`0.power=312000`), by `*` for all devices; MIG instances by `0.mig1`. Values are in
 * NVML's own units (milliwatts, bytes, MHz, per cent). Faults:
 *
 *   fail.FUNCTION=CODE       FUNCTION returns CODE (also per device: `0.fail.FUNCTION`, and
 *                            `fail.*` for every function of a device)
 *   hang.FUNCTION=1          FUNCTION never returns (also per device)
 *   crash.FUNCTION=1         FUNCTION kills the process by a segmentation fault
 *   0.lost_at=FUNCTION       from FUNCTION on the device is lost
 *
 * Functions are named as the symbols of the library, with their version suffix.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    SUCCESS = 0,
    UNINITIALIZED = 1,
    INVALID_ARGUMENT = 2,
    NOT_SUPPORTED = 3,
    NOT_FOUND = 6,
    INSUFFICIENT_SIZE = 7,
    GPU_IS_LOST = 15,
    ARGUMENT_VERSION_MISMATCH = 25
};
#define MAX_DEVICES 64
#define MAX_MIG 8
#define MAX_LINES 8192

typedef unsigned long long u64;
typedef struct { int index, mig, lost; } Device;
typedef struct { u64 total, free, used; } Memory;
typedef struct { unsigned version; u64 total, reserved, free, used; } MemoryV2;
typedef struct { unsigned gpu, memory; } Utilization;
typedef struct { unsigned pid; u64 used; unsigned gpu_instance, compute_instance; } ProcessInfo;
typedef struct {
    char legacy[16];
    unsigned domain, bus, device, pci_device, pci_subsystem;
    char bus_id[32];
} PciInfo;
typedef struct { unsigned version, sensor; int temperature; } TemperatureV1;

static Device devices[MAX_DEVICES][MAX_MIG + 1];
static char *keys[MAX_LINES], *values[MAX_LINES];
static int lines = -1, initialised = 0;

static void load(void) {
    static char text[512];
    if (lines >= 0) return;
    lines = 0;
    const char *path = getenv("NVML_STANDIN");
    FILE *file = path ? fopen(path, "r") : NULL;
    while (file && lines < MAX_LINES && fgets(text, sizeof text, file)) {
        char *sign = strchr(text, '=');
        text[strcspn(text, "\n")] = 0;
        if (!sign || text[0] == '#') continue;
        *sign = 0;
        keys[lines] = strdup(text);
        values[lines++] = strdup(sign + 1);
    }
    if (file) fclose(file);
}

static const char *find(const char *key) {
    load();
    for (int i = lines - 1; i >= 0; i--)
        if (!strcmp(keys[i], key)) return values[i];
    return NULL;
}

/* The value of a device's key: its own, else that of `*`. */
static const char *get(const Device *device, const char *key) {
    char full[256];
    const char *found = NULL;
    if (!device) return find(key);
    if (device->mig >= 0) snprintf(full, sizeof full, "%d.mig%d.%s", device->index, device->mig, key);
    else snprintf(full, sizeof full, "%d.%s", device->index, key);
    found = find(full);
    if (found || device->mig >= 0) return found;
    snprintf(full, sizeof full, "*.%s", key);
    return find(full);
}

static int faulty(const Device *device, const char *kind, const char *function) {
    char key[256];
    const char *found;
    snprintf(key, sizeof key, "%s.%s", kind, function);
    found = get(device, key);
    if (!found && device) {
        snprintf(key, sizeof key, "%s.*", kind);
        found = get(device, key);
    }
    return found ? atoi(found) : 0;
}

static int enter(Device *device, const char *function) {
    if (!initialised && strncmp(function, "nvmlInit", 8)) return UNINITIALIZED;
    if (device) {
        const char *lost_at = get(device, "lost_at");
        if (lost_at && !strcmp(lost_at, function)) device->lost = 1;
        if (device->lost) return GPU_IS_LOST;
    }
    if (faulty(device, "crash", function)) raise(SIGSEGV);
    while (faulty(device, "hang", function)) pause();
    return faulty(device, "fail", function);
}

#define ENTER(device) \
    do { \
        int code = enter(device, __func__); \
        if (code) return code; \
    } while (0)

/* The number under `key`; what the file does not tell is not supported by the device. */
static int number(const Device *device, const char *key, u64 *out) {
    const char *found = get(device, key);
    if (!found) return NOT_SUPPORTED;
    *out = strtoull(found, NULL, 0);
    return SUCCESS;
}

static int unsigned_number(const Device *device, const char *key, unsigned *out) {
    u64 wide = 0;
    int code = number(device, key, &wide);
    if (code == SUCCESS) *out = (unsigned)wide;
    return code;
}

static int string(const Device *device, const char *key, char *out, unsigned length) {
    const char *found = get(device, key);
    if (!found) return NOT_SUPPORTED;
    if (strlen(found) >= length) return INSUFFICIENT_SIZE;
    strcpy(out, found);
    return SUCCESS;
}

/* ---- the library ---- */

int nvmlInitWithFlags(unsigned flags) {
    (void)flags;
    ENTER(NULL);
    initialised = 1;
    return SUCCESS;
}

int nvmlInit_v2(void) {
    ENTER(NULL);
    initialised = 1;
    return SUCCESS;
}

int nvmlShutdown(void) {
    ENTER(NULL);
    return SUCCESS;
}

const char *nvmlErrorString(int code) {
    (void)code;
    return "an error of the stand-in";
}

int nvmlSystemGetDriverVersion(char *out, unsigned length) {
    ENTER(NULL);
    return string(NULL, "driver", out, length);
}

int nvmlSystemGetNVMLVersion(char *out, unsigned length) {
    ENTER(NULL);
    return string(NULL, "nvml", out, length);
}

int nvmlDeviceGetCount_v2(unsigned *out) {
    ENTER(NULL);
    return unsigned_number(NULL, "count", out);
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, Device **out) {
    unsigned count = 0;
    int code = nvmlDeviceGetCount_v2(&count);
    if (code) return code;
    if (index >= count || index >= MAX_DEVICES) return INVALID_ARGUMENT;
    Device *device = &devices[index][0];
    device->index = (int)index;
    device->mig = -1;
    ENTER(device);
    *out = device;
    return SUCCESS;
}

/* ---- what a device is ---- */

int nvmlDeviceGetName(Device *device, char *out, unsigned length) {
    ENTER(device);
    return string(device, "name", out, length);
}

int nvmlDeviceGetUUID(Device *device, char *out, unsigned length) {
    ENTER(device);
    return string(device, "uuid", out, length);
}

int nvmlDeviceGetPciInfo_v3(Device *device, PciInfo *out) {
    ENTER(device);
    memset(out, 0, sizeof *out);
    return string(device, "pci_bus_id", out->bus_id, sizeof out->bus_id);
}

/* ---- how it is doing ---- */

int nvmlDeviceGetUtilizationRates(Device *device, Utilization *out) {
    ENTER(device);
    int code = unsigned_number(device, "utilization_gpu", &out->gpu);
    return code ? code : unsigned_number(device, "utilization_memory", &out->memory);
}

int nvmlDeviceGetMemoryInfo(Device *device, Memory *out) {
    u64 reserved = 0;
    ENTER(device);
    int code = number(device, "memory_total", &out->total);
    if (!code) code = number(device, "memory_used", &out->used);
    if (code) return code;
    number(device, "memory_reserved", &reserved);
    out->used += reserved;
    out->free = out->total - out->used;
    return SUCCESS;
}

int nvmlDeviceGetMemoryInfo_v2(Device *device, MemoryV2 *out) {
    ENTER(device);
    if (out->version != (sizeof(MemoryV2) | (2u << 24))) return ARGUMENT_VERSION_MISMATCH;
    int code = number(device, "memory_total", &out->total);
    if (!code) code = number(device, "memory_used", &out->used);
    if (code) return code;
    out->reserved = 0;
    number(device, "memory_reserved", &out->reserved);
    out->free = out->total - out->used - out->reserved;
    return SUCCESS;
}

int nvmlDeviceGetPowerUsage(Device *device, unsigned *out) {
    ENTER(device);
    return unsigned_number(device, "power", out);
}

int nvmlDeviceGetEnforcedPowerLimit(Device *device, unsigned *out) {
    ENTER(device);
    return unsigned_number(device, "power_limit", out);
}

int nvmlDeviceGetPowerManagementDefaultLimit(Device *device, unsigned *out) {
    ENTER(device);
    return unsigned_number(device, "power_limit_default", out);
}

int nvmlDeviceGetPowerManagementLimitConstraints(Device *device, unsigned *low, unsigned *high) {
    ENTER(device);
    int code = unsigned_number(device, "power_limit_min", low);
    return code ? code : unsigned_number(device, "power_limit_max", high);
}

static int clock_of(const Device *device, unsigned type, const char *suffix, unsigned *out) {
    static const char *names[] = {"graphics", "sm", "memory", "video"};
    char key[64];
    if (type > 3) return INVALID_ARGUMENT;
    snprintf(key, sizeof key, "clock_%s%s", names[type], suffix);
    return unsigned_number(device, key, out);
}

int nvmlDeviceGetClockInfo(Device *device, unsigned type, unsigned *out) {
    ENTER(device);
    return clock_of(device, type, "", out);
}

int nvmlDeviceGetMaxClockInfo(Device *device, unsigned type, unsigned *out) {
    ENTER(device);
    return clock_of(device, type, "_max", out);
}

int nvmlDeviceGetCurrentClocksEventReasons(Device *device, u64 *out) {
    ENTER(device);
    return number(device, "clocks_event_reasons", out);
}

int nvmlDeviceGetCurrentClocksThrottleReasons(Device *device, u64 *out) {
    ENTER(device);
    return number(device, "clocks_event_reasons", out);
}

int nvmlDeviceGetTemperature(Device *device, unsigned sensor, unsigned *out) {
    ENTER(device);
    if (sensor != 0) return INVALID_ARGUMENT;
    return unsigned_number(device, "temperature", out);
}

int nvmlDeviceGetTemperatureV(Device *device, TemperatureV1 *out) {
    unsigned degrees = 0;
    ENTER(device);
    if (out->version != (sizeof(TemperatureV1) | (1u << 24))) return ARGUMENT_VERSION_MISMATCH;
    int code = unsigned_number(device, "temperature", &degrees);
    out->temperature = (int)degrees;
    return code;
}

int nvmlDeviceGetTemperatureThreshold(Device *device, unsigned threshold, unsigned *out) {
    ENTER(device);
    if (threshold != 1) return NOT_SUPPORTED;
    return unsigned_number(device, "temperature_slowdown", out);
}

int nvmlDeviceGetPersistenceMode(Device *device, unsigned *out) {
    ENTER(device);
    return unsigned_number(device, "persistence", out);
}

int nvmlDeviceGetPerformanceState(Device *device, unsigned *out) {
    ENTER(device);
    return unsigned_number(device, "performance_state", out);
}

/* ---- its memory's health ---- */

int nvmlDeviceGetTotalEccErrors(Device *device, unsigned type, unsigned counter, u64 *out) {
    char key[64];
    ENTER(device);
    snprintf(key, sizeof key, "ecc_%s_%s", type ? "uncorrected" : "corrected",
             counter ? "aggregate" : "volatile");
    return number(device, key, out);
}

int nvmlDeviceGetRetiredPages(Device *device, unsigned cause, unsigned *count, u64 *addresses) {
    unsigned have = 0;
    ENTER(device);
    int code = unsigned_number(device, cause ? "retired_double_bit" : "retired_single_bit", &have);
    if (code) return code;
    if (have > *count) {
        *count = have;
        return INSUFFICIENT_SIZE;
    }
    for (unsigned i = 0; addresses && i < have; i++) addresses[i] = 0x1000u * (i + 1);
    *count = have;
    return SUCCESS;
}

int nvmlDeviceGetRetiredPagesPendingStatus(Device *device, unsigned *out) {
    ENTER(device);
    return unsigned_number(device, "retired_pending", out);
}

int nvmlDeviceGetRemappedRows(Device *device, unsigned *corrected, unsigned *uncorrected,
                              unsigned *pending, unsigned *failure) {
    ENTER(device);
    int code = unsigned_number(device, "remapped_corrected", corrected);
    if (!code) code = unsigned_number(device, "remapped_uncorrected", uncorrected);
    if (!code) code = unsigned_number(device, "remap_pending", pending);
    return code ? code : unsigned_number(device, "remap_failed", failure);
}

/* ---- its links ---- */

#define PLAIN(function, key) \
    int function(Device *device, unsigned *out) { \
        ENTER(device); \
        return unsigned_number(device, key, out); \
    }
PLAIN(nvmlDeviceGetCurrPcieLinkGeneration, "pcie_gen")
PLAIN(nvmlDeviceGetMaxPcieLinkGeneration, "pcie_gen_max")
PLAIN(nvmlDeviceGetCurrPcieLinkWidth, "pcie_width")
PLAIN(nvmlDeviceGetMaxPcieLinkWidth, "pcie_width_max")
PLAIN(nvmlDeviceGetPcieReplayCounter, "pcie_replays")

/* `nvlinks` is a string with one digit per link: 1 up, 0 down. */
int nvmlDeviceGetNvLinkState(Device *device, unsigned link, unsigned *out) {
    ENTER(device);
    const char *links = get(device, "nvlinks");
    if (!links) return NOT_SUPPORTED;
    if (link >= strlen(links)) return INVALID_ARGUMENT;
    *out = links[link] == '1';
    return SUCCESS;
}

/* ---- who uses it ---- */

/* `processes` is `pid:bytes` or `pid:bytes:gpu instance:compute instance`, separated by commas;
 * bytes may be `-` where the driver does not tell. */
int nvmlDeviceGetComputeRunningProcesses_v3(Device *device, unsigned *count, ProcessInfo *out) {
    unsigned have = 0;
    ENTER(device);
    const char *rest = get(device, "processes");
    if (!rest) return NOT_SUPPORTED;
    for (const char *at = rest; *at;) {
        unsigned pid = 0, gpu_instance = ~0u, compute_instance = ~0u;
        char bytes[32] = "-";
        sscanf(at, "%u:%31[0-9-]:%u:%u", &pid, bytes, &gpu_instance, &compute_instance);
        if (out && have < *count)
            out[have] = (ProcessInfo){pid, bytes[0] == '-' ? ~0ull : strtoull(bytes, NULL, 10),
                                      gpu_instance, compute_instance};
        have++;
        at += strcspn(at, ",");
        if (*at) at++;
    }
    int fits = have <= *count;
    *count = have;
    return fits ? SUCCESS : INSUFFICIENT_SIZE;
}

/* ---- its instances ---- */

int nvmlDeviceGetMigMode(Device *device, unsigned *current, unsigned *pending) {
    ENTER(device);
    int code = unsigned_number(device, "mig", current);
    *pending = code ? 0 : *current;
    return code;
}

int nvmlDeviceGetMaxMigDeviceCount(Device *device, unsigned *out) {
    ENTER(device);
    *out = 7;
    return SUCCESS;
}

int nvmlDeviceGetMigDeviceHandleByIndex(Device *device, unsigned index, Device **out) {
    ENTER(device);
    if (index >= MAX_MIG) return INVALID_ARGUMENT;
    Device *instance = &devices[device->index][index + 1];
    instance->index = device->index;
    instance->mig = (int)index;
    if (!get(instance, "uuid")) return NOT_FOUND;
    *out = instance;
    return SUCCESS;
}

PLAIN(nvmlDeviceGetGpuInstanceId, "gpu_instance")
PLAIN(nvmlDeviceGetComputeInstanceId, "compute_instance")
