// Results as text that benchstat reads, a line a repeat, and as JSON.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

namespace bench {

struct result {
    std::string name; // Go's form: Msm/group=g1/scalars=uniform/log=22
    std::vector<int64_t> ns;
    // Further figures, each with its unit in its name.
    std::vector<std::pair<std::string, double>> values;

    int64_t median() const {
        std::vector<int64_t> sorted = ns;
        std::sort(sorted.begin(), sorted.end());
        return sorted.empty() ? 0 : sorted[sorted.size() / 2];
    }
};

class report {
public:
    // With a path, the JSON there is whole after each result: a run may be stopped.
    explicit report(std::string json) : json_(std::move(json)) {}

    // Facts of the machine: key and text.
    void fact(const std::string& key, const std::string& text) {
        facts_.emplace_back(key, text);
        printf("%s: %s\n", key.c_str(), text.c_str());
    }

    // Repeats of a name that was there before join those; the further figures are the last ones.
    void add(const result& r) {
        auto same = [&](const result& x) { return x.name == r.name; };
        auto at = std::find_if(results_.begin(), results_.end(), same);
        if (at == results_.end()) {
            results_.push_back(r);
        } else {
            at->ns.insert(at->ns.end(), r.ns.begin(), r.ns.end());
            at->values = r.values;
        }
        for (int64_t ns : r.ns) printf("Benchmark%s 1 %lld ns/op\n", r.name.c_str(), (long long)ns);
        fflush(stdout);
        if (!json_.empty()) write_json();
    }

    const std::vector<result>& all() const { return results_; }

private:
    void write_json() const {
        FILE* f = fopen(json_.c_str(), "w");
        if (!f) {
            fprintf(stderr, "write %s: cannot open\n", json_.c_str());
            return;
        }
        fprintf(f, "{\n");
        for (const auto& [key, text] : facts_)
            fprintf(f, "  \"%s\": \"%s\",\n", key.c_str(), text.c_str());
        fprintf(f, "  \"results\": [");
        for (size_t i = 0; i < results_.size(); i++) {
            const result& r = results_[i];
            fprintf(f, "%s\n    {\"name\": \"%s\", \"median_ns\": %lld, \"ns\": [", i ? "," : "",
                    r.name.c_str(), (long long)r.median());
            for (size_t k = 0; k < r.ns.size(); k++)
                fprintf(f, "%s%lld", k ? ", " : "", (long long)r.ns[k]);
            fprintf(f, "]");
            for (const auto& [key, value] : r.values)
                fprintf(f, ", \"%s\": %.17g", key.c_str(), value);
            fprintf(f, "}");
        }
        fprintf(f, "\n  ]\n}\n");
        fclose(f);
    }

    const std::string json_;
    std::vector<std::pair<std::string, std::string>> facts_;
    std::vector<result> results_;
};

} // namespace bench
