// haul.hpp: plus BASE-URL. Failures, functions that throw, a body that is read, and a batch.
#include <array>
#include <haul.hpp>
#include <iostream>
#include <stdexcept>
#include <vector>

static int wrong(const char *what) {
    std::cerr << what << '\n';
    return 1;
}

int main(int argc, char **argv) {
    if (argc != 2)
        return 2;
    const std::string base = argv[1];
    haul::client client;
    if (!client.timeout(std::chrono::seconds(20)) || !client.max_redirects(3))
        return wrong("a setting failed");

    auto small = client.perform(haul::request("GET", base + "/small/4").header("Accept", "*/*"));
    if (!small || small->status() != 200 || small->body() != "small 4\n" || !small->is_success())
        return wrong("the body is not that of the origin");
    if (small->header("content-length") != "8" || small->header("no-such-field") || small->headers().empty())
        return wrong("the fields are not those of the origin");
    if (small->version() != "HTTP/1.1" || small->url() != base + "/small/4" || !small->trailers().empty())
        return wrong("the reply has other properties");

    auto scheme = client.perform(haul::request("GET", "gopher://h/"));
    if (scheme || scheme.error().status() != HAUL_STATUS_UNSUPPORTED_SCHEME || scheme.error().text().empty())
        return wrong("a wrong scheme was not refused");
    auto field = client.perform(haul::request("GET", base + "/small/4").header("a b", "c").timeout(std::chrono::seconds(1)));
    if (field || !field.error().is_usage())
        return wrong("the first wrong setting was not reported");
    auto refused = client.perform(haul::request("GET", "http://127.0.0.1:1/"));
    if (refused || !refused.error().is_connect() || refused.error().url() != "http://127.0.0.1:1/")
        return wrong("a refused connection has other properties");

    std::string sent = "a body from a function", seen;
    std::size_t at = 0;
    auto read = [&](std::span<char> memory) {
        const std::size_t count = sent.copy(memory.data(), std::min<std::size_t>(memory.size(), 5), at);
        at += count;
        return count;
    };
    auto echo = client.perform(haul::request("POST", base + "/echo").body_from(read).on_body([&](std::string_view piece) {
        seen += piece;
        return true;
    }));
    if (!echo || seen.find(sent) == std::string::npos || !echo->body().empty())
        return wrong("the body of the function did not come back");

    std::vector<haul_step> steps;
    auto note = [&](const haul_step_info &info) { steps.push_back(info.step); };
    if (!client.perform(haul::request("GET", base + "/small").on_step(note))
        || steps != std::vector{HAUL_STEP_SENT, HAUL_STEP_HEAD, HAUL_STEP_DONE})
        return wrong("the steps were not told");

    int told = 0;
    try {
        auto taken = [](std::string_view) { return true; };
        (void)client.perform(haul::request("GET", base + "/chain/2").on_body(taken).on_step([&](const haul_step_info &) {
            told++;
            throw std::runtime_error("of the program");
        }));
        return wrong("the exception of on_step was lost");
    } catch (const std::runtime_error &) {
        if (told != 1)
            return wrong("a function was called after an exception");
    }

    bool caught = false;
    try {
        (void)client.perform(haul::request("GET", base + "/bytes/100000").on_body([](std::string_view) -> bool {
            throw std::runtime_error("of the program");
        }));
    } catch (const std::runtime_error &thrown) {
        caught = std::string(thrown.what()) == "of the program";
    }
    if (!caught)
        return wrong("the exception of a function was lost");

    auto opened = client.open(haul::request("GET", base + "/bytes/100000"));
    std::size_t total = 0;
    std::array<char, 4096> memory{};
    while (opened) {
        auto got = opened->read(memory);
        if (!got)
            return wrong("a body could not be read");
        if (*got == 0)
            break;
        total += *got;
    }
    if (total != 100000)
        return wrong("a body that was read has another length");

    haul::batch batch(client.clone());
    for (int number = 0; number < 20; number++)
        if (!batch.add(haul::request("GET", base + "/small/" + std::to_string(number))))
            return wrong("a request was not added");
    if (!batch.add(haul::request("GET", "http://127.0.0.1:1/")) || batch.add(haul::request("GET", "no url")))
        return wrong("a request was added or refused without reason");
    std::size_t expected = 0;
    while (auto next = batch.next().value()) {
        if (next->number != expected++)
            return wrong("replies have another order");
        if (next->number == 20 ? !!next->outcome : next->outcome->body() != "small " + std::to_string(next->number) + "\n")
            return wrong("a reply of the batch is another one");
    }
    if (expected != 21 || batch.pending() != 0)
        return wrong("a reply of the batch is missing");

    if (!batch.add(haul::request("GET", base + "/delay/60000/small")))
        return wrong("a slow request was not added");
    auto none = batch.next(std::chrono::milliseconds(-5));
    if (!none || *none || batch.pending() != 1)
        return wrong("a wait until a passed time waited");
    auto late = client.perform(haul::request("GET", base + "/delay/2000/small").timeout(std::chrono::milliseconds(-5)));
    if (late || !late.error().is_timeout())
        return wrong("a negative time limit is none");
    auto steps_in_batch = batch.add(haul::request("GET", base + "/small").on_step(note));
    if (steps_in_batch || !steps_in_batch.error().is_usage())
        return wrong("a batch took a function that it calls in another thread");

    using namespace std::string_literals;
    const haul::request with_nul[] = {haul::request("GET\0"s, base), haul::request("GET", base + "/\0x"s),
                                      std::move(haul::request("GET", base).header("X", "a\0b"s)),
                                      std::move(haul::request("GET", base).part("a\0"s, ""))};
    for (const haul::request &made : with_nul)
        if (auto cut = client.perform(made); cut || cut.error().status() != HAUL_STATUS_SETUP || cut.error().text().empty())
            return wrong("a string with a NUL was sent");
    if (client.user_agent("a\0b"s) || client.header("X", "a\0b"s) || haul::join("http://h/\0"s, "a"))
        return wrong("a setting took a string with a NUL");

    haul::jar jar;
    if (!jar.set(base, "a=b; Path=/") || jar.count() != 1 || jar.set(base, "") || !client.cookies(jar))
        return wrong("the jar has other cookies");
    if (haul::join("http://h/a/b", "../c").value_or("") != "http://h/c")
        return wrong("a reference was resolved to another URL");
    std::cout << "right\n";
    return 0;
}
