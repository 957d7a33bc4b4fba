// haul.hpp: haul.h for C++23. Objects free themselves, failures are std::expected.
//
//     haul::client client;
//     auto reply = client.perform(haul::request("GET", "https://example.com/"));
//     if (!reply)
//         std::cerr << reply.error().text() << '\n';
//     else
//         std::cout << reply->status() << ' ' << reply->body();
//
// An object is moved, never copied, unless it has a clone(). get() returns the object of haul.h, for what this
// header leaves out. The rules of haul.h for threads, forks and signals hold: a client, a jar and an error may be used by
// any number of threads at once, a request, a response and a batch by one at a time.
//
// A function that is given to a request is called in the thread that called haul. If it throws, no other function of the
// request is called, and the call that was under way throws the same exception. The request ends at once, except after an
// exception of on_step: it then ends where it would call another function, or when it is complete.
//
// A string with a NUL is refused with HAUL_STATUS_SETUP, because the strings of haul.h end there.
#ifndef HAUL_HPP
#define HAUL_HPP

#include <haul.h>

#include <version>
#ifndef __cpp_lib_expected
#error "haul.hpp needs C++23 with <expected> (-std=c++23); haul.h is for older versions"
#endif

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <expected>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace haul {

namespace detail {

template <auto Free> struct free_by {
    void operator()(auto *object) const noexcept { Free(object); }
};

template <class T, auto Free> using owned = std::unique_ptr<T, free_by<Free>>;

inline std::string_view view(haul_slice slice) noexcept { return {slice.data, slice.data == nullptr ? 0 : slice.len}; }

} // namespace detail

// The reason for a failure.
class error {
  public:
    // The reason for the last failure in this thread.
    static error last() { return error(haul_error_clone(haul_last_error())); }

    // An argument that cannot be used.
    static error setup(const char *text) { return error(haul_error_new_setup(text)); }

    // A copy of an error of haul.h.
    static error of(const haul_error *other) { return error(haul_error_clone(other)); }

    // One of curl's exit codes.
    haul_status status() const noexcept { return haul_error_code(get()); }
    // "URL: what happened: why", without credentials.
    std::string_view text() const noexcept { return haul_error_text(get()); }
    // The URL of the request; empty if there is none.
    std::string_view url() const noexcept {
        const char *url = haul_error_url(get());
        return url == nullptr ? "" : url;
    }
    // The errno of a system call that failed; 0 if none did.
    int system_error() const noexcept { return haul_error_errno(get()); }
    bool is_timeout() const noexcept { return haul_error_is_timeout(get()); }
    // Nothing was sent: any request may be repeated.
    bool is_connect() const noexcept { return haul_error_is_connect(get()); }
    bool is_resolve() const noexcept { return haul_error_is_resolve(get()); }
    bool is_tls() const noexcept { return haul_error_is_tls(get()); }
    // The call itself was wrong.
    bool is_usage() const noexcept { return haul_error_is_usage(get()); }
    // A function of the program asked to stop.
    bool is_interrupted() const noexcept { return haul_error_is_interrupted(get()); }

    const haul_error *get() const noexcept { return error_.get(); }

  private:
    explicit error(haul_error *own) : error_(own, haul_error_free) {}

    // Errors are often copied, and never changed.
    std::shared_ptr<haul_error> error_;
};

template <class T> using result = std::expected<T, error>;

namespace detail {

inline result<void> check(haul_status status) {
    if (status == HAUL_STATUS_OK)
        return {};
    return std::unexpected(error::last());
}

// Returns true if one of the strings has a NUL.
inline bool has_nul(const auto &...texts) noexcept { return ((texts.find('\0') != std::string::npos) || ...); }

inline error nul_error() { return error::setup("a string has a NUL in it"); }

// Calls a function of haul.h, which gets these strings.
inline result<void> check_texts(auto &&call, const auto &...texts) {
    if (has_nul(texts...))
        return std::unexpected(nul_error());
    return check(call());
}

// A time limit for haul.h, where 0 means no limit. A negative time, of a deadline that has passed, is the shortest limit.
inline std::uint64_t time_limit(std::chrono::milliseconds time) noexcept {
    return time.count() < 0 ? 1 : static_cast<std::uint64_t>(time.count());
}

// The functions of a request. They stay at their place while the request is moved or copied.
struct request_functions {
    std::function<std::size_t(std::span<char>)> read;
    std::function<bool()> rewind;
    std::function<bool(std::string_view)> on_body;
    std::function<void(const haul_step_info &)> on_step;
    std::exception_ptr thrown;

    // Calls a function of the program, whose exceptions must not reach haul.
    template <class Result> Result guard(Result failure, auto &&call) noexcept {
        if (thrown)
            return failure;
        try {
            return call();
        } catch (...) {
            thrown = std::current_exception();
            return failure;
        }
    }

    void rethrow() {
        if (thrown)
            std::rethrow_exception(std::exchange(thrown, nullptr));
    }
};

} // namespace detail

// One request. Each setting returns the request, so that they can be chained; the first one that fails is reported by the
// call that sends the request.
class request {
  public:
    request(const std::string &method, const std::string &url) {
        if (detail::has_nul(method, url)) {
            failure_ = detail::nul_error();
            return;
        }
        request_.reset(haul_request_new(method.c_str(), url.c_str()));
        if (!request_)
            failure_ = error::last();
    }

    // Sets a field, instead of others of that name.
    request &header(const std::string &name, const std::string &value) {
        return note([&] { return haul_request_set_header(get(), name.c_str(), value.c_str()); }, name, value);
    }
    // Adds a field beside others of that name.
    request &add_header(const std::string &name, const std::string &value) {
        return note([&] { return haul_request_add_header(get(), name.c_str(), value.c_str()); }, name, value);
    }
    // The body: a copy of these bytes.
    request &body(std::string_view bytes) {
        return note([&] { return haul_request_set_body(get(), bytes.data(), bytes.size()); });
    }
    // The body: JSON that is already written.
    request &json(std::string_view text) { return header("Content-Type", "application/json").body(text); }
    // The body: the content of a file.
    request &body_file(const std::string &path) {
        return note([&] { return haul_request_set_body_file(get(), path.c_str()); }, path);
    }
    // The body: what `read` writes into the memory that it is given, until it returns 0. Without `length` it is sent in
    // chunks. `rewind` goes back to the first byte; without it, the body cannot be sent again. Not for a batch.
    request &body_from(std::function<std::size_t(std::span<char>)> read, std::optional<std::uint64_t> length = {},
                       std::function<bool()> rewind = {}) {
        auto *functions = use_functions();
        functions->read = std::move(read);
        functions->rewind = std::move(rewind);
        const haul_read_fn read_body = [](void *user, char *buffer, std::size_t size) {
            auto *own = static_cast<detail::request_functions *>(user);
            return own->guard(HAUL_READ_ERROR, [&] { return own->read(std::span(buffer, size)); });
        };
        const haul_rewind_fn rewind_body = [](void *user) {
            auto *own = static_cast<detail::request_functions *>(user);
            return own->guard(1, [&] { return own->rewind() ? 0 : 1; });
        };
        const auto size = length ? static_cast<std::int64_t>(*length) : -1;
        const auto rewinds = functions->rewind ? rewind_body : nullptr;
        return note([&] { return haul_request_set_body_callback(get(), read_body, rewinds, functions, size); });
    }
    // Adds a field to a form (application/x-www-form-urlencoded).
    request &form_field(std::string_view name, std::string_view value) {
        return note(
            [&] { return haul_request_add_form_field(get(), name.data(), name.size(), value.data(), value.size()); });
    }
    // Adds a part with these bytes to a form (multipart/form-data).
    request &part(const std::string &name, std::string_view bytes, const std::string &file_name = {},
                  const std::string &content_type = {}) {
        const auto add = [&] {
            return haul_request_add_part(get(), name.c_str(), bytes.data(), bytes.size(), maybe(file_name),
                                         maybe(content_type));
        };
        return note(add, name, file_name, content_type);
    }
    // Adds a part with the content of a file to a form (multipart/form-data).
    request &part_file(const std::string &name, const std::string &path, const std::string &file_name = {},
                       const std::string &content_type = {}) {
        const auto add = [&] {
            return haul_request_add_part_file(get(), name.c_str(), path.c_str(), maybe(file_name), maybe(content_type));
        };
        return note(add, name, path, file_name, content_type);
    }
    // The time limit of the whole request; 0 for the setting of the client.
    request &timeout(std::chrono::milliseconds time) {
        return note([&] { return haul_request_set_timeout(get(), detail::time_limit(time)); });
    }
    // The number of redirects to follow at most.
    request &max_redirects(std::uint32_t most) {
        return note([&] { return haul_request_set_max_redirects(get(), most); });
    }
    // The size of the body of the reply at most.
    request &max_size(std::uint64_t bytes) {
        return note([&] { return haul_request_set_max_size(get(), bytes); });
    }
    request &auth(haul_auth kind, const std::string &user, const std::string &secret) {
        return note([&] { return haul_request_set_auth(get(), kind, user.c_str(), secret.c_str()); }, user, secret);
    }
    // Called with each piece of the body of the reply, which then has none; false ends the request. Not for a batch or
    // client::open.
    request &on_body(std::function<bool(std::string_view)> take) {
        auto *functions = use_functions();
        functions->on_body = std::move(take);
        const haul_body_fn piece = [](void *user, const char *data, std::size_t size) {
            auto *own = static_cast<detail::request_functions *>(user);
            return own->guard(1, [&] { return own->on_body({data, size}) ? 0 : 1; });
        };
        return note([&] { return haul_request_set_output(get(), nullptr, nullptr, piece, functions); });
    }

    // Called with each step of the request while it happens. A batch refuses such a request, because it would call the
    // function in its own thread.
    request &on_step(std::function<void(const haul_step_info &)> take) {
        auto *functions = use_functions();
        functions->on_step = std::move(take);
        const haul_step_fn step = [](void *user, const haul_step_info *info) {
            auto *own = static_cast<detail::request_functions *>(user);
            own->guard(0, [&] {
                own->on_step(*info);
                return 0;
            });
        };
        return note([&] { return haul_request_set_on_step(get(), step, functions); });
    }

    // The first setting that failed.
    const std::optional<error> &failure() const noexcept { return failure_; }
    haul_request *get() const noexcept { return request_.get(); }

  private:
    friend class batch;
    friend class client;

    static const char *maybe(const std::string &text) noexcept { return text.empty() ? nullptr : text.c_str(); }

    detail::request_functions *use_functions() {
        if (!functions_)
            functions_ = std::make_shared<detail::request_functions>();
        return functions_.get();
    }

    // Calls a function of haul.h, which gets these strings, unless an earlier setting failed.
    request &note(auto &&set, const auto &...texts) {
        if (failure_)
            return *this;
        if (detail::has_nul(texts...))
            failure_ = detail::nul_error();
        else if (set() != HAUL_STATUS_OK)
            failure_ = error::last();
        return *this;
    }

    bool has_step_function() const noexcept { return functions_ && functions_->on_step; }

    // The exception of a function of the program goes before the failure that it caused.
    void rethrow() const {
        if (functions_)
            functions_->rethrow();
    }

    detail::owned<haul_request, haul_request_free> request_;
    std::shared_ptr<detail::request_functions> functions_;
    std::optional<error> failure_;
};

// A header field of a reply.
struct field {
    std::string_view name;
    std::string_view value;
};

// A reply. What it returns belongs to it.
class response {
  public:
    // Takes a response of haul.h.
    explicit response(haul_response *own) : response_(own) {}

    std::uint16_t status() const noexcept { return haul_response_status(get()); }
    bool is_success() const noexcept { return status() >= 200 && status() < 300; }
    // Such as "HTTP/1.1".
    std::string_view version() const noexcept { return haul_response_version(get()); }
    std::string_view reason() const noexcept { return detail::view(haul_response_reason(get())); }
    // The URL after redirects, without credentials and fragment.
    std::string_view url() const noexcept { return detail::view(haul_response_url(get())); }
    // The first field of that name; empty optional if there is none.
    std::optional<std::string_view> header(const std::string &name) const {
        if (detail::has_nul(name))
            return std::nullopt;
        const haul_slice value = haul_response_header(get(), name.c_str());
        return value.data == nullptr ? std::nullopt : std::optional(detail::view(value));
    }
    // All fields, in their order.
    std::vector<field> headers() const {
        std::vector<field> all;
        for (std::size_t at = 0; at < haul_response_header_count(get()); at++)
            all.push_back({detail::view(haul_response_header_name(get(), at)),
                           detail::view(haul_response_header_value(get(), at))});
        return all;
    }
    // The trailer fields after the body.
    std::vector<field> trailers() const {
        std::vector<field> all;
        haul_header trailer{};
        for (std::size_t at = 0; at < trailer_count() && haul_response_trailer(get(), at, &trailer) == HAUL_STATUS_OK; at++)
            all.push_back({detail::view(trailer.name), detail::view(trailer.value)});
        return all;
    }
    // The whole body; empty if a function took it or if it is still to be read.
    std::string_view body() const noexcept { return detail::view(haul_response_body(get())); }
    haul_times times() const noexcept { return haul_response_times(get()); }

    // Reads the next bytes of the body of a response of client::open; 0 at its end.
    result<std::size_t> read(std::span<char> memory) {
        std::size_t got = 0;
        const haul_status status = haul_response_read(get(), memory.data(), memory.size(), &got);
        if (functions_)
            functions_->rethrow();
        if (status != HAUL_STATUS_OK)
            return std::unexpected(error::last());
        return got;
    }

    haul_response *get() const noexcept { return response_.get(); }

  private:
    friend class client;

    std::size_t trailer_count() const noexcept { return haul_response_trailer_count(get()); }

    // Those of the request, whose body may still be sent; they outlive the response.
    std::shared_ptr<detail::request_functions> functions_;
    detail::owned<haul_response, haul_response_free> response_;
};

// Cookies, for any number of clients and threads.
class jar {
  public:
    jar() : jar_(haul_jar_new()) {}

    // Adds the cookies of a file. Returns the number of lines that were not acceptable as cookies.
    result<std::size_t> load(const std::string &path) {
        if (detail::has_nul(path))
            return std::unexpected(detail::nul_error());
        std::size_t refused = 0;
        if (haul_jar_load(get(), path.c_str(), &refused) != HAUL_STATUS_OK)
            return std::unexpected(error::last());
        return refused;
    }
    result<void> save(const std::string &path) const {
        return detail::check_texts([&] { return haul_jar_save(get(), path.c_str()); }, path);
    }
    // Stores the cookie of a Set-Cookie field in a reply from `url`.
    result<void> set(const std::string &url, const std::string &set_cookie) {
        return detail::check_texts([&] { return haul_jar_set(get(), url.c_str(), set_cookie.c_str()); }, url, set_cookie);
    }
    std::size_t count() const noexcept { return haul_jar_count(get()); }
    void clear() noexcept { haul_jar_clear(get()); }

    haul_jar *get() const noexcept { return jar_.get(); }

  private:
    detail::owned<haul_jar, haul_jar_free> jar_;
};

// The state that requests share: settings, connections, a jar. All settings of haul.h can be made through get().
class client {
  public:
    client() : client_(haul_client_new()) {}

    // A client with the present settings of this one, which shares its connections and its jar.
    client clone() const { return client(haul_client_clone(get())); }

    result<void> timeout(std::chrono::milliseconds time) {
        return detail::check(haul_client_set_timeout(get(), detail::time_limit(time)));
    }
    result<void> connect_timeout(std::chrono::milliseconds time) {
        return detail::check(haul_client_set_connect_timeout(get(), detail::time_limit(time)));
    }
    result<void> max_redirects(std::uint32_t most) { return detail::check(haul_client_set_max_redirects(get(), most)); }
    result<void> retries(std::uint32_t most) { return detail::check(haul_client_set_retries(get(), most)); }
    result<void> decode(bool on) { return detail::check(haul_client_set_decode(get(), on)); }
    result<void> http(haul_http version) { return detail::check(haul_client_set_http(get(), version)); }
    result<void> header(const std::string &name, const std::string &value) {
        return detail::check_texts([&] { return haul_client_set_header(get(), name.c_str(), value.c_str()); }, name, value);
    }
    result<void> user_agent(const std::string &name) {
        return detail::check_texts([&] { return haul_client_set_user_agent(get(), name.c_str()); }, name);
    }
    result<void> auth(haul_auth kind, const std::string &user, const std::string &secret) {
        const auto set = [&] { return haul_client_set_auth(get(), kind, user.c_str(), secret.c_str()); };
        return detail::check_texts(set, user, secret);
    }
    result<void> proxy(const std::string &url) {
        return detail::check_texts([&] { return haul_client_set_proxy(get(), url.c_str()); }, url);
    }
    result<void> ca_file(const std::string &path) {
        return detail::check_texts([&] { return haul_client_set_ca_file(get(), path.c_str()); }, path);
    }
    result<void> cookies(const jar &jar) { return detail::check(haul_client_set_jar(get(), jar.get())); }

    // Sends a request and waits for the whole reply.
    result<response> perform(const request &request) { return send(request, haul_client_perform); }

    // Sends a request and waits for the head of the reply, whose body is then read by response::read.
    result<response> open(const request &request) { return send(request, haul_client_open); }

    haul_client *get() const noexcept { return client_.get(); }

  private:
    explicit client(haul_client *own) : client_(own) {}

    result<response> send(const request &request, auto by) {
        if (request.failure())
            return std::unexpected(*request.failure());
        haul_response *reply = nullptr;
        const haul_status status = by(get(), request.get(), &reply);
        response own(reply);
        request.rethrow();
        if (status != HAUL_STATUS_OK)
            return std::unexpected(error::last());
        own.functions_ = request.functions_;
        return own;
    }

    detail::owned<haul_client, haul_client_free> client_;
};

// Many requests at once over the connections of a client, with its settings when the batch is made.
class batch {
  public:
    // A finished request: the number that add returned, and the reply or the reason why there is none.
    struct reply {
        std::size_t number;
        result<response> outcome;
    };

    explicit batch(const client &client) : batch_(haul_batch_new(client.get())) {}

    // Settings, to be made before the first request is added. 0: the default.
    result<void> parallel(std::size_t all, std::size_t per_host) {
        return detail::check(haul_batch_set_parallel(get(), all, per_host));
    }
    result<void> order(haul_order order) { return detail::check(haul_batch_set_order(get(), order)); }
    result<void> memory(std::size_t bytes) { return detail::check(haul_batch_set_memory(get(), bytes)); }
    result<void> rate(double all, double per_host) { return detail::check(haul_batch_set_rate(get(), all, per_host)); }

    // Adds a request, which is copied; never waits. Returns its number: 0 for the first.
    result<std::size_t> add(const request &request) {
        if (request.failure())
            return std::unexpected(*request.failure());
        if (request.has_step_function())
            return std::unexpected(error::setup("a batch takes no request with on_step"));
        if (haul_batch_add(get(), request.get(), reinterpret_cast<void *>(added_)) != HAUL_STATUS_OK)
            return std::unexpected(error::last());
        return added_++;
    }

    // Takes the next finished request, and waits at most so long for it (without a time: until there is one). Returns
    // nothing if none finished in time, or if all were taken.
    result<std::optional<reply>> next(std::optional<std::chrono::milliseconds> wait = {}) {
        haul_response *response = nullptr;
        void *number = nullptr;
        // A negative time, of a deadline that has passed, does not wait.
        const std::int64_t time = wait ? std::max<std::int64_t>(wait->count(), 0) : -1;
        if (haul_batch_next(get(), time, &response, &number) != HAUL_STATUS_OK)
            return std::unexpected(error::last());
        if (response == nullptr)
            return std::nullopt;
        haul::response own(response);
        const auto index = reinterpret_cast<std::size_t>(number);
        if (const haul_error *failure = haul_response_error(response))
            return reply{index, std::unexpected(error::of(failure))};
        return reply{index, std::move(own)};
    }

    // The number of requests that were added and not taken yet.
    std::size_t pending() const noexcept { return haul_batch_pending(get()); }
    // A descriptor for an event loop, readable while next() has something to return. It belongs to the batch.
    int descriptor() const noexcept { return haul_batch_fd(get()); }

    haul_batch *get() const noexcept { return batch_.get(); }

  private:
    detail::owned<haul_batch, haul_batch_free> batch_;
    std::size_t added_ = 0;
};

// Resolves `reference` relative to `base` (RFC 3986 section 5).
inline result<std::string> join(const std::string &base, const std::string &reference) {
    if (detail::has_nul(base, reference))
        return std::unexpected(detail::nul_error());
    char *joined = nullptr;
    if (haul_url_join(base.c_str(), reference.c_str(), &joined) != HAUL_STATUS_OK)
        return std::unexpected(error::last());
    std::string url(joined);
    haul_free(joined);
    return url;
}

} // namespace haul

#endif // HAUL_HPP
