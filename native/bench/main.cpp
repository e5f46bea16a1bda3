// Measures the device library by itself, without Go: NTT and MSM by size and profile beside
// sppark's own, prove_start by size, what recording costs. Text for benchstat on standard output,
// JSON where asked.
#include <cstring>
#include <sstream>

#include "library.h"
#include "overhead.h"
#include "prove.h"
#include "report.h"

using namespace bench;

namespace {

struct options {
    std::string library = "./libhighwater_native.so";
    std::string json;
    std::vector<uint32_t> logs{20, 22, 24};
    std::string only = "ntt,msm,prove,upload";
    std::string scalars = "label,dense", memory = "pinned,pageable";
    uint32_t repeats = 5, rounds = 1, pairs = 100;
    int device = 0;
    uint64_t arena_bytes = 0;
    bool sppark = true, profile = false;
};

const char usage[] =
    "highwater-native-bench [--library PATH] [--logs 20,22,24] [--json PATH] [--device 0]\n"
    "    [--only ntt,msm,prove,upload,setup,overhead] [--arena BYTES] [--repeats 5]\n"
    "    [--no-sppark]                 ours alone\n"
    "    [--rounds 1]                  how often what sppark has too is timed, turn by turn\n"
    "    [--scalars label,dense] [--memory pinned,pageable] [--profile]\n"
    "                                  of prove; profile: for ncu --profile-from-start off\n"
    "    [--pairs 100]                 of overhead: starts with and without recording\n";

std::vector<uint32_t> numbers(const std::string& text) {
    std::vector<uint32_t> all;
    std::istringstream in(text);
    for (std::string part; std::getline(in, part, ',');)
        all.push_back(uint32_t(strtoul(part.c_str(), nullptr, 10)));
    return all;
}

options parse(int argc, char** argv) {
    options o;
    for (int i = 1; i < argc; i++) {
        const std::string flag = argv[i];
        if (flag == "--no-sppark" || flag == "--profile") {
            (flag == "--profile" ? o.profile : o.sppark) = flag == "--profile";
            continue;
        }
        if (flag == "--help" || i + 1 == argc) {
            fputs(usage, flag == "--help" ? stdout : stderr);
            exit(flag == "--help" ? 0 : 2);
        }
        const std::string value = argv[++i];
        if (flag == "--library") o.library = value;
        else if (flag == "--json") o.json = value;
        else if (flag == "--logs") o.logs = numbers(value);
        else if (flag == "--only") o.only = value;
        else if (flag == "--scalars") o.scalars = value;
        else if (flag == "--memory") o.memory = value;
        else if (flag == "--repeats") o.repeats = uint32_t(atoi(value.c_str()));
        else if (flag == "--rounds") o.rounds = uint32_t(atoi(value.c_str()));
        else if (flag == "--pairs") o.pairs = uint32_t(atoi(value.c_str()));
        else if (flag == "--device") o.device = atoi(value.c_str());
        else if (flag == "--arena") o.arena_bytes = strtoull(value.c_str(), nullptr, 10);
        else {
            fputs(usage, stderr);
            exit(2);
        }
    }
    return o;
}

// Whether a word is in a list.
bool has(const std::string& list, const char* word) {
    return ("," + list + ",").find("," + std::string(word) + ",") != std::string::npos;
}

class suite {
public:
    suite(const library& lib, const options& o, report& to) : lib_(lib), o_(o), to_(to) {
        hw_config c{};
        c.struct_bytes = sizeof c;
        c.device = o.device;
        c.arena_bytes = o.arena_bytes;
        for (uint32_t lg : o.logs) pool_ = std::max(pool_, pool_for(lg));
        c.pinned_pool_bytes = pool_;
        lib.must(lib.hw_context_create(&c, &context_), "create context");
    }
    ~suite() { lib_.hw_context_destroy(context_); }
    suite(const suite&) = delete;
    suite& operator=(const suite&) = delete;

    void run() {
        for (uint32_t lg : o_.logs) {
            for (uint32_t round = 0; round < o_.rounds; round++) {
                if (wants("ntt")) ntt(lg, round);
                if (wants("msm")) msm(lg, round);
            }
            if (wants("setup")) setup(lg);
            if (wants("upload")) one("Upload", spec(HW_BENCH_UPLOAD, lg));
            if (wants("prove")) proofs(lg);
        }
    }

private:
    bool wants(const char* what) const { return has(o_.only, what); }

    hw_bench_spec spec(uint32_t what, uint32_t lg) const {
        hw_bench_spec s{};
        s.struct_bytes = sizeof s;
        s.what = what;
        s.log_size = lg;
        s.group = HW_G1;
        s.warmups = 1;
        s.repeats = o_.repeats;
        s.seed = 1;
        return s;
    }

    void one(const std::string& name, const hw_bench_spec& s) {
        hw_bench_result out{};
        out.struct_bytes = sizeof out;
        lib_.must(lib_.hw_bench(context_, &s, &out), name.c_str());
        result r{name + "/log=" + std::to_string(s.log_size), {out.ns, out.ns + out.repeats}, {}};
        if (s.what == HW_BENCH_MSM) {
            r.values = {{"window_bits", double(out.msm.window_bits)},
                        {"digits", double(out.msm.digits)},
                        {"pairs", double(out.msm.pairs)},
                        {"xyzz", double(out.msm.xyzz)},
                        {"rounds", double(out.msm.rounds)},
                        {"groups", double(out.msm.groups)},
                        {"scratch_bytes", double(out.msm.scratch_bytes)}};
        }
        to_.add(r);
        lib_.take_events(context_);
    }

    // Ours and sppark's own on the same inputs, which goes first by turns.
    void beside(const char* op, const std::string& kind, hw_bench_spec s, uint32_t sppark,
                uint32_t round) {
        const uint32_t ours = s.what;
        for (uint32_t turn = 0; turn < 2; turn++) {
            const bool own = turn == round % 2;
            if (!own && !o_.sppark) continue;
            s.what = own ? ours : sppark;
            one(std::string(op) + "/by=" + (own ? "highwater/" : "sppark/") + kind, s);
        }
    }

    void ntt(uint32_t lg, uint32_t round) {
        struct {
            const char* name;
            uint32_t order, flags;
        } kinds[] = {
            {"inverse/order=nr", HW_ORDER_NR, HW_NTT_INVERSE},
            {"coset/order=rn", HW_ORDER_RN, HW_NTT_COSET},
            {"inverse_coset/order=nr", HW_ORDER_NR, HW_NTT_INVERSE | HW_NTT_COSET},
            {"forward/order=nn", HW_ORDER_NN, 0},
        };
        for (auto& k : kinds) {
            hw_bench_spec s = spec(HW_BENCH_NTT, lg);
            s.order = k.order;
            s.flags = k.flags;
            beside("Ntt", std::string("kind=") + k.name, s, HW_BENCH_SPPARK_NTT, round);
        }
    }

    void msm(uint32_t lg, uint32_t round) {
        const char* profiles[] = {"uniform", "label", "one_value"};
        for (uint32_t group : {HW_G1, HW_G2}) {
            for (uint32_t profile : {HW_SCALARS_UNIFORM, HW_SCALARS_LABEL, HW_SCALARS_ONE_VALUE}) {
                hw_bench_spec s = spec(HW_BENCH_MSM, lg);
                s.group = group;
                s.profile = profile;
                const std::string kind = std::string("group=") + (group == HW_G1 ? "g1" : "g2") +
                                         "/scalars=" + profiles[profile];
                if (group == HW_G1 && profile == HW_SCALARS_UNIFORM)
                    beside("Msm", kind, s, HW_BENCH_SPPARK_MSM, round);
                else if (round == 0)
                    one("Msm/by=highwater/" + kind, s);
            }
        }
    }

    void setup(uint32_t lg) {
        for (uint32_t group : {HW_G1, HW_G2}) {
            hw_bench_spec s = spec(HW_BENCH_FIXED_BASE, lg);
            s.group = group;
            one(std::string("FixedBase/group=") + (group == HW_G1 ? "g1" : "g2"), s);
        }
    }

    void proofs(uint32_t lg) {
        const prove_spec all[] = {{lg, true, true, true, o_.repeats, o_.profile},
                                  {lg, false, true, true, o_.repeats, o_.profile},
                                  {lg, false, false, true, o_.repeats, o_.profile}};
        for (const prove_spec& s : all) {
            if (has(o_.scalars, s.label ? "label" : "dense") &&
                has(o_.memory, s.pinned ? "pinned" : "pageable"))
                prove(lib_, context_, s, to_);
            lib_.take_events(context_);
        }
    }

    const library& lib_;
    const options& o_;
    report& to_;
    uint64_t pool_ = 0;
    hw_context* context_ = nullptr;
};

// What our times are against sppark's, where both were measured.
void ratios(const report& r) {
    for (const result& own : r.all()) {
        const size_t at = own.name.find("by=highwater");
        if (at == std::string::npos) continue;
        std::string other = own.name;
        other.replace(at, strlen("by=highwater"), "by=sppark");
        for (const result& theirs : r.all()) {
            if (theirs.name != other) continue;
            printf("# %-60s %9.3f ms, sppark %9.3f ms, %.2fx\n", own.name.c_str(),
                   double(own.median()) / 1e6, double(theirs.median()) / 1e6,
                   double(theirs.median()) / double(own.median()));
        }
    }
}

} // namespace

int main(int argc, char** argv) {
    const options o = parse(argc, argv);
    if (o.repeats < 1 || o.repeats > HW_BENCH_MAX_REPEATS) die("--repeats is not in 1..64");
    if (o.rounds < 1 || o.rounds > 1000) die("--rounds is not in 1..1000");
    if (o.pairs < 1 || o.pairs > 100000) die("--pairs is not in 1..100000");
    const library lib(o.library);
    hw_device_info d{};
    d.struct_bytes = sizeof d;
    lib.must(lib.hw_device_describe(o.device, &d), "describe device");
    report r(o.json);
    r.fact("goos", "linux");
    r.fact("goarch", "amd64");
    r.fact("pkg", "highwater/native");
    r.fact("device", d.name);
    r.fact("library", lib.hw_build_info());
    if (has(o.only, "overhead")) { // before the suite's context takes the device's memory
        for (uint32_t lg : o.logs) overhead(lib, {o.device, lg, o.pairs}, r);
    }
    if (o.only != "overhead") {
        suite s(lib, o, r);
        s.run();
    }
    ratios(r);
}
