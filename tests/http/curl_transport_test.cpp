#include "gridscope/http/curl_transport.hpp"

#include <gtest/gtest.h>
#include <pthread.h>

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <memory>
#include <thread>

#include "support/http_server.hpp"
#include "support/matchers.hpp"

namespace gridscope::http {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;
using test::Fails;
using test::HttpFault;
using test::HttpReply;
using test::HttpRequest;
using test::HttpServer;
using test::HttpServerOptions;
using test::IsOk;
using ::testing::_;
using ::testing::AllOf;
using ::testing::Eq;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

// Keeps the body; what it answers can be set.
class CollectingSink final : public BodySink {
 public:
  Result<Flow> on_head(const ResponseHead& head) override {
    heads.push_back(head);
    return head_answer;
  }
  Result<Flow> on_body(std::span<const std::byte> bytes) override {
    body += test::to_text(bytes);
    return body_answer;
  }

  Result<Flow> head_answer = Flow::kMore;
  Result<Flow> body_answer = Flow::kMore;
  std::vector<ResponseHead> heads;
  std::string body;
};

Url url_of(const std::string& text) {
  return parse_url(text).value();
}

// One server, one transport, one request at a time.
class CurlTransportTest : public ::testing::Test {
 protected:
  HttpServer& serve(HttpServer::Handler handler, HttpServerOptions options = {}) {
    server_ = std::make_unique<HttpServer>(std::move(handler), options);
    return *server_;
  }
  HttpServer& serve(const HttpReply& reply) {
    return serve([reply](const HttpRequest&) { return reply; });
  }

  SendResult send(const Request& request, const std::stop_token& stop = {}) {
    if (transport_ == nullptr) transport_ = make_curl_transport(options_).value();
    return transport_->send(request, sink_, stop);
  }
  SendResult get(const std::string& path = "/file?key=SECRET") {
    return send({.url = url_of(server_->url(path))});
  }

  TransportOptions options_ = {.connect_timeout = milliseconds(2'000),
                               .stall_timeout = milliseconds(2'000)};
  CollectingSink sink_;
  std::unique_ptr<HttpServer> server_;
  std::unique_ptr<Transport> transport_;
};

TEST_F(CurlTransportTest, BringsStatusHeadersAndBody) {
  serve({.status = 404, .fields = {{"X-Error-Code", "EntryNotFound"}}, .body = "not here"});
  const auto head = get();
  ASSERT_THAT(head, IsOk());
  EXPECT_EQ(head->status, 404);
  EXPECT_THAT(*head->headers.find("x-error-code"), Eq("EntryNotFound"));
  EXPECT_EQ(sink_.body, "not here");
  ASSERT_EQ(sink_.heads.size(), 1U);
  EXPECT_EQ(sink_.heads[0].status, 404);
}

TEST_F(CurlTransportTest, SendsWhatWasAskedAndNothingElse) {
  options_.user_agent = "gridscope/test";
  serve({.body = "x"});
  const Url url = url_of(server_->url("/a/../b%2Fc?x=1&y=%20"));
  ASSERT_THAT(send({.url = url, .headers = {{"Range", "bytes=0-7"}, {"X-Empty", ""}}}), IsOk());
  const HttpRequest request = server_->requests().at(0);
  EXPECT_EQ(request.method, "GET");
  EXPECT_EQ(request.target, "/a/../b%2Fc?x=1&y=%20");
  EXPECT_EQ(request.range(), "bytes=0-7");
  EXPECT_EQ(request.field("User-Agent"), "gridscope/test");
  ASSERT_NE(request.find("X-Empty"), nullptr);
  EXPECT_FALSE(request.has_authorization());
  EXPECT_EQ(request.find("Accept-Encoding"), nullptr);
  EXPECT_EQ(request.find("Cookie"), nullptr);
}

TEST_F(CurlTransportTest, PostsABody) {
  serve({.body = "ok"});
  const std::string body(3'000'000, 'b');
  ASSERT_THAT(send({.method = Method::kPost,
                    .url = url_of(server_->url("/api")),
                    .headers = {{"Content-Type", "application/json"}},
                    .body = body}),
              IsOk());
  ASSERT_THAT(send({.method = Method::kPost, .url = url_of(server_->url("/api"))}), IsOk());
  const auto requests = server_->requests();
  EXPECT_EQ(requests.at(0).method, "POST");
  EXPECT_EQ(requests.at(0).body, body);
  EXPECT_EQ(requests.at(0).field("Content-Type"), "application/json");
  EXPECT_EQ(requests.at(0).find("Expect"), nullptr);
  EXPECT_EQ(requests.at(1).find("Content-Type"), nullptr);
}

TEST_F(CurlTransportTest, HeadHasHeadersAndNoBody) {
  serve({.fields = {{"X-Linked-Size", "77"}}, .body = "seventeen letters"});
  const auto head = send({.method = Method::kHead, .url = url_of(server_->url())});
  ASSERT_THAT(head, IsOk());
  EXPECT_EQ(*head->headers.find("Content-Length"), "17");
  EXPECT_EQ(*head->headers.find("X-Linked-Size"), "77");
  EXPECT_EQ(sink_.body, "");
}

TEST_F(CurlTransportTest, FollowsNoRedirect) {
  serve({.status = 302, .fields = {{"Location", "/elsewhere"}}, .body = "Found"});
  const auto head = get();
  ASSERT_THAT(head, IsOk());
  EXPECT_EQ(head->status, 302);
  EXPECT_EQ(*head->headers.find("Location"), "/elsewhere");
  EXPECT_EQ(server_->requests().size(), 1U);
}

TEST_F(CurlTransportTest, DecodesNoContent) {
  serve({.fields = {{"Content-Encoding", "gzip"}}, .body = "as it came"});
  ASSERT_THAT(get(), IsOk());
  EXPECT_EQ(sink_.body, "as it came");
}

TEST_F(CurlTransportTest, ReadsChunkedAndUnframedBodies) {
  for (const auto framing : {HttpReply::Framing::kChunked, HttpReply::Framing::kUntilClose}) {
    serve({.body = "whole", .framing = framing});
    sink_.body.clear();
    ASSERT_THAT(get(), IsOk());
    EXPECT_EQ(sink_.body, "whole");
  }
}

TEST_F(CurlTransportTest, SkipsInterimResponses) {
  serve({.raw = "HTTP/1.1 103 Early Hints\r\nX-Hint: 1\r\n\r\n"
                "HTTP/1.1 200 OK\r\nX-Final: 1\r\nContent-Length: 2\r\n\r\nok"});
  const auto head = get();
  ASSERT_THAT(head, IsOk());
  EXPECT_EQ(head->status, 200);
  EXPECT_EQ(head->headers.find("X-Hint"), nullptr);
  ASSERT_NE(head->headers.find("X-Final"), nullptr);
  EXPECT_EQ(sink_.heads.size(), 1U);
  EXPECT_EQ(sink_.body, "ok");
}

TEST_F(CurlTransportTest, LeavesOutFoldedHeaderLines) {
  serve({.raw = "HTTP/1.1 200 OK\r\nX-One: 1\r\n  X-Two: 2\r\nContent-Length: 0\r\n\r\n"});
  const auto head = get();
  ASSERT_THAT(head, IsOk());
  EXPECT_THAT(head->headers.find("X-Two"), Eq(nullptr));
}

TEST_F(CurlTransportTest, ReusesConnections) {
  serve({.body = "x"});
  for (int i = 0; i < 5; ++i) ASSERT_THAT(get(), IsOk());
  EXPECT_EQ(server_->requests().size(), 5U);
  EXPECT_EQ(server_->connections_accepted(), 1U);
}

TEST_F(CurlTransportTest, TwoNamesAreTwoHosts) {
  serve({.body = "x"});
  ASSERT_THAT(get(), IsOk());
  ASSERT_THAT(send({.url = url_of(server_->localhost_url())}), IsOk());
  EXPECT_EQ(server_->requests().at(0).host(), "127.0.0.1");
  EXPECT_EQ(server_->requests().at(1).host(), "localhost");
  EXPECT_EQ(server_->connections_accepted(), 2U);
}

TEST_F(CurlTransportTest, ManySendersShareTheConnectionsOfAHost) {
  constexpr std::size_t kSenders = 32;
  constexpr std::size_t kConnections = 4;
  constexpr int kRequestsEach = 8;
  options_.connections_per_host = kConnections;
  const std::string content(200'000, 'c');
  serve([&](const HttpRequest&) { return HttpReply{.body = content}; });
  transport_ = make_curl_transport(options_).value();
  std::atomic<std::size_t> whole = 0;
  {
    std::vector<std::jthread> senders;
    for (std::size_t i = 0; i < kSenders; ++i) {
      senders.emplace_back([&] {
        for (int n = 0; n < kRequestsEach; ++n) {
          CollectingSink sink;
          const Request request{.url = url_of(server_->url())};
          if (transport_->send(request, sink, {}) && sink.body == content) ++whole;
        }
      });
    }
  }
  EXPECT_EQ(whole, kSenders * kRequestsEach);
  EXPECT_EQ(server_->requests().size(), kSenders * kRequestsEach);
  EXPECT_LE(server_->connections_accepted(), kConnections);
}

TEST_F(CurlTransportTest, WaitingForAConnectionIsNoStall) {
  options_.connections_per_host = 1;
  options_.stall_timeout = milliseconds(1'000);
  serve({.body = "x", .delay = milliseconds(300)});
  transport_ = make_curl_transport(options_).value();
  std::atomic<int> good = 0;
  {
    std::vector<std::jthread> senders;
    for (int i = 0; i < 5; ++i) {
      senders.emplace_back([&] {
        CollectingSink sink;
        if (transport_->send({.url = url_of(server_->url())}, sink, {})) ++good;
      });
    }
  }
  EXPECT_EQ(good, 5);
}

TEST_F(CurlTransportTest, WhoWaitsForAConnectionCanBeStopped) {
  options_.connections_per_host = 1;
  serve({.body = "0123456789", .fault = {.kind = HttpFault::Kind::kStall, .after = 5}});
  std::stop_source first;
  std::stop_source second;
  CollectingSink other;
  {
    transport_ = make_curl_transport(options_).value();
    const std::jthread holder([&] {
      const Request request{.url = url_of(server_->url())};
      EXPECT_THAT(transport_->send(request, other, first.get_token()),
                  Fails(ErrorCode::kCancelled, _));
    });
    while (server_->requests().empty()) std::this_thread::sleep_for(milliseconds(1));
    const std::jthread stopper([&] {
      std::this_thread::sleep_for(milliseconds(50));
      second.request_stop();
    });
    EXPECT_THAT(send({.url = url_of(server_->url())}, second.get_token()),
                Fails(ErrorCode::kCancelled, HasSubstr("GET http://127.0.0.1")));
    first.request_stop();
  }
  EXPECT_EQ(server_->requests().size(), 1U);
}

TEST_F(CurlTransportTest, OneHostDoesNotWaitForAnother) {
  options_.connections_per_host = 1;
  serve([](const HttpRequest& request) {
    HttpReply reply{.body = "0123456789"};
    if (request.host() == "127.0.0.1") {
      reply.fault = {.kind = HttpFault::Kind::kStall, .after = 5};
    }
    return reply;
  });
  transport_ = make_curl_transport(options_).value();
  std::stop_source stop;
  CollectingSink other;
  const std::jthread holder([&] {
    const Request request{.url = url_of(server_->url())};
    EXPECT_THAT(transport_->send(request, other, stop.get_token()),
                Fails(ErrorCode::kCancelled, _));
  });
  while (server_->requests().empty()) std::this_thread::sleep_for(milliseconds(1));
  EXPECT_THAT(send({.url = url_of(server_->localhost_url())}), IsOk());
  stop.request_stop();
}

// So that a host which grants few connections is asked over those.
TEST_F(CurlTransportTest, PrefersAConnectionThatEndedWell) {
  int asked = 0;
  serve([&asked](const HttpRequest&) {
    ++asked;
    if (asked == 1) return HttpReply{.body = "x", .delay = milliseconds(100)};
    HttpReply reply{.body = "x", .delay = milliseconds(300)};
    reply.fault = {.kind = HttpFault::Kind::kReset, .from = HttpFault::From::kResponse};
    return asked == 2 ? reply : HttpReply{.body = "x"};
  });
  transport_ = make_curl_transport(options_).value();
  CollectingSink other;
  {
    const std::jthread first(
        [&] { EXPECT_THAT(transport_->send({.url = url_of(server_->url())}, other, {}), IsOk()); });
    while (server_->requests().empty()) std::this_thread::sleep_for(milliseconds(1));
    EXPECT_THAT(get(), Fails(ErrorCode::kUnavailable, _));
  }
  for (int i = 0; i < 3; ++i) EXPECT_THAT(get(), IsOk());
  EXPECT_EQ(server_->connections_accepted(), 2U);
}

TEST_F(CurlTransportTest, ASlowSinkIsNoStall) {
  class SlowSink final : public BodySink {
   public:
    Result<Flow> on_head(const ResponseHead& /*head*/) override { return Flow::kMore; }
    Result<Flow> on_body(std::span<const std::byte> /*bytes*/) override {
      if (!slept_) std::this_thread::sleep_for(milliseconds(700));
      slept_ = true;
      return Flow::kMore;
    }

   private:
    bool slept_ = false;
  };
  options_.stall_timeout = milliseconds(500);
  serve({.body = "0123456789",
         .fault = {.kind = HttpFault::Kind::kPause, .after = 5, .pause = milliseconds(900)}});
  transport_ = make_curl_transport(options_).value();
  SlowSink sink;
  EXPECT_THAT(transport_->send({.url = url_of(server_->url())}, sink, {}), IsOk());
}

TEST_F(CurlTransportTest, LeavesTheSendersSignalsAsTheyWere) {
  serve({.body = "x"});
  sigset_t pipe;
  sigemptyset(&pipe);
  sigaddset(&pipe, SIGPIPE);
  for (const int how : {SIG_BLOCK, SIG_UNBLOCK}) {
    pthread_sigmask(how, &pipe, nullptr);
    ASSERT_THAT(get(), IsOk());
    sigset_t after;
    pthread_sigmask(SIG_BLOCK, nullptr, &after);
    EXPECT_EQ(sigismember(&after, SIGPIPE), how == SIG_BLOCK ? 1 : 0);
  }
}

TEST_F(CurlTransportTest, SinkMayEndATransfer) {
  serve({.body = std::string(5'000'000, 'x')});
  sink_.body_answer = Flow::kEnough;
  const auto head = get();
  ASSERT_THAT(head, IsOk());
  EXPECT_EQ(head->status, 200);
  EXPECT_LT(sink_.body.size(), 5'000'000U);

  sink_.body.clear();
  sink_.head_answer = Flow::kEnough;
  ASSERT_THAT(get(), IsOk());
  EXPECT_EQ(sink_.body, "");
}

TEST_F(CurlTransportTest, ErrorsOfTheSinkComeBack) {
  serve({.body = "x"});
  sink_.body_answer = fail(ErrorCode::kCorrupt, "bad byte");
  EXPECT_THAT(get(), Fails(ErrorCode::kCorrupt, HasSubstr("bad byte")));
  sink_.head_answer = fail(ErrorCode::kChanged, "other file");
  EXPECT_THAT(get(), Fails(ErrorCode::kChanged, HasSubstr("other file")));
}

// Every place where a response can break off. The path is shown, the query never.
TEST_F(CurlTransportTest, DroppedConnectionsAreUnavailable) {
  const std::string body(1000, 'x');
  struct Case {
    HttpFault::From from;
    std::uint64_t after;
  };
  for (const auto kind : {HttpFault::Kind::kDrop, HttpFault::Kind::kReset}) {
    for (const Case& at : {Case{HttpFault::From::kResponse, 0}, Case{HttpFault::From::kResponse, 7},
                           Case{HttpFault::From::kResponse, 25}, Case{HttpFault::From::kBody, 0},
                           Case{HttpFault::From::kBody, 999}}) {
      serve({.body = body, .fault = {.kind = kind, .after = at.after, .from = at.from}});
      EXPECT_THAT(get(), Fails(ErrorCode::kUnavailable,
                               AllOf(StartsWith("GET http://127.0.0.1:"), HasSubstr("/file?...: "),
                                     Not(HasSubstr("SECRET")))))
          << "after " << at.after;
    }
  }
}

TEST_F(CurlTransportTest, ShortBodyIsUnavailableAndLongBodyIsCut) {
  serve({.raw = "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nshort"});
  EXPECT_THAT(get(), Fails(ErrorCode::kUnavailable, HasSubstr("within the body")));
  sink_.body.clear();
  serve({.fields = {{"Content-Length", "4"}}, .body = "longer than that"});
  ASSERT_THAT(get(), IsOk());
  EXPECT_EQ(sink_.body, "long");
}

TEST_F(CurlTransportTest, WhatIsNoHttpIsCorrupt) {
  serve({.raw = "SSH-2.0-OpenSSH_9.2\r\n"});
  EXPECT_THAT(get(), Fails(ErrorCode::kCorrupt, HasSubstr("does not speak HTTP")));
  serve({.raw = "HTTP/9.9 abc\r\n\r\n"});
  EXPECT_THAT(get(), Fails(ErrorCode::kCorrupt, HasSubstr("HTTP")));
}

TEST_F(CurlTransportTest, HeadersAreBounded) {
  HttpReply many{.body = "x"};
  for (int i = 0; i < 300; ++i) many.fields.push_back({"X-Filler", std::string(1'000, 'f')});
  serve(many);
  EXPECT_THAT(get(), Fails(ErrorCode::kLimit, HasSubstr("headers")));
  serve({.fields = {{"X-Filler", std::string(400'000, 'f')}}, .body = "x"});
  EXPECT_THAT(get(), Fails(ErrorCode::kLimit, HasSubstr("header")));
  EXPECT_TRUE(sink_.heads.empty());
}

TEST_F(CurlTransportTest, StallsTimeOut) {
  options_.stall_timeout = milliseconds(200);
  for (const auto from : {HttpFault::From::kResponse, HttpFault::From::kBody}) {
    serve({.body = "0123456789",
           .fault = {.kind = HttpFault::Kind::kStall, .after = 5, .from = from}});
    const auto start = steady_clock::now();
    EXPECT_THAT(get(), Fails(ErrorCode::kTimeout, HasSubstr("nothing arrived for 200 ms")));
    const auto took = steady_clock::now() - start;
    EXPECT_GE(took, milliseconds(200));
    EXPECT_LT(took, milliseconds(1'500));
  }
}

TEST_F(CurlTransportTest, ASlowBodyIsNoStall) {
  options_.stall_timeout = milliseconds(1'000);
  serve({.body = "0123456789",
         .fault = {.kind = HttpFault::Kind::kPause, .after = 5, .pause = milliseconds(600)},
         .delay = milliseconds(600)});
  ASSERT_THAT(get(), IsOk());
  EXPECT_EQ(sink_.body, "0123456789");
}

TEST_F(CurlTransportTest, ASlowUploadIsNoStall) {
  options_.stall_timeout = milliseconds(1'000);
  serve([](const HttpRequest&) { return HttpReply{.body = "ok"}; },
        {.upload_pause = milliseconds(1)});
  const auto start = steady_clock::now();
  ASSERT_THAT(send({.method = Method::kPost,
                    .url = url_of(server_->url()),
                    .body = std::string(24'000'000, 'b')}),
              IsOk());
  EXPECT_GT(steady_clock::now() - start, options_.stall_timeout);
}

TEST_F(CurlTransportTest, StopRequestEndsATransferSoon) {
  serve({.body = "0123456789", .fault = {.kind = HttpFault::Kind::kStall, .after = 5}});
  std::stop_source source;
  steady_clock::time_point stopped;
  const std::jthread stopper([&] {
    std::this_thread::sleep_for(milliseconds(100));
    stopped = steady_clock::now();
    source.request_stop();
  });
  const auto head = send({.url = url_of(server_->url())}, source.get_token());
  const auto ended = steady_clock::now();
  EXPECT_THAT(head, Fails(ErrorCode::kCancelled, HasSubstr("cancelled")));
  EXPECT_LT(ended - stopped, milliseconds(500));
  EXPECT_THAT(send({.url = url_of(server_->url())}, source.get_token()),
              Fails(ErrorCode::kCancelled, _));
}

TEST_F(CurlTransportTest, NobodyListeningIsUnavailable) {
  serve({.body = "x"});
  const Url url = url_of(server_->url("/?key=SECRET"));
  server_.reset();
  const auto refused = send({.url = url});
  EXPECT_THAT(refused, Fails(ErrorCode::kUnavailable,
                             AllOf(HasSubstr("no connection"), HasSubstr("firewall"),
                                   Not(HasSubstr("SECRET")))));
  EXPECT_EQ(refused.error().host, HostName::kResolved);
}

TEST_F(CurlTransportTest, UnknownHostIsUnavailableAndToldApart) {
  const auto direct = send({.url = url_of("http://no-such-host.invalid/")});
  EXPECT_THAT(direct, Fails(ErrorCode::kUnavailable, HasSubstr("host not found")));
  EXPECT_EQ(direct.error().host, HostName::kUnresolved);

  transport_.reset();
  options_.proxy = "http://no-such-proxy.invalid:80";
  const auto proxied = send({.url = url_of("http://host.invalid/")});
  EXPECT_THAT(proxied, Fails(ErrorCode::kUnavailable, HasSubstr("proxy not found")));
  EXPECT_EQ(proxied.error().host, HostName::kUnresolved);
}

TEST_F(CurlTransportTest, HeadersCannotSmuggleOthersIn) {
  serve({.body = "x"});
  const Url url = url_of(server_->url());
  for (const Header& header :
       {Header{"X", "a\r\nY: b"}, Header{"X\n", "a"}, Header{"X: 1\r\nY", "b"}, Header{"", "a"}}) {
    EXPECT_THAT(send({.url = url, .headers = {header}}),
                Fails(ErrorCode::kInvalidArgument, HasSubstr("header")));
  }
  EXPECT_TRUE(server_->requests().empty());
}

TEST_F(CurlTransportTest, VerifiesCertificates) {
  serve([](const HttpRequest&) { return HttpReply{.body = "private"}; },
        {.security = HttpServerOptions::Security::kTls});
  EXPECT_THAT(get(), Fails(ErrorCode::kPermission,
                           AllOf(HasSubstr("certificate"), HasSubstr("do not trust"),
                                 Not(HasSubstr("SECRET")))));
  EXPECT_TRUE(server_->requests().empty());

  transport_.reset();
  options_.ca_file = server_->certificate_file();
  ASSERT_THAT(get(), IsOk());
  ASSERT_THAT(get(), IsOk());
  EXPECT_EQ(sink_.body, "privateprivate");

  transport_.reset();
  options_.ca_file = "/no/such/file.pem";
  EXPECT_THAT(get(), Fails(ErrorCode::kPermission, HasSubstr("trusted certificates")));
}

TEST_F(CurlTransportTest, PlainServerOnAnHttpsPortIsUnavailable) {
  serve({.body = "x"});
  EXPECT_THAT(send({.url = url_of("https://127.0.0.1:" + std::to_string(server_->port()))}),
              Fails(ErrorCode::kUnavailable, HasSubstr("TLS")));
}

TEST_F(CurlTransportTest, AProxyIsAskedForTheWholeUrl) {
  serve({.body = "from the proxy"});
  options_.proxy = server_->url();
  ASSERT_THAT(send({.url = url_of("http://files.invalid/path?q=1")}), IsOk());
  EXPECT_EQ(sink_.body, "from the proxy");
  EXPECT_EQ(server_->requests().at(0).target, "http://files.invalid/path?q=1");
}

TEST_F(CurlTransportTest, AProxyThatWantsAPasswordIsPermission) {
  serve({.status = 407, .fields = {{"Proxy-Authenticate", "Basic realm=\"HIDDEN\""}}});
  options_.proxy = "http://user:PASSWORD@127.0.0.1:" + std::to_string(server_->port());
  EXPECT_THAT(send({.url = url_of("https://files.invalid/")}),
              Fails(ErrorCode::kPermission,
                    AllOf(HasSubstr("status 407"), HasSubstr("password in the proxy setting"),
                          Not(HasSubstr("PASSWORD")), Not(HasSubstr("HIDDEN")))));
}

TEST_F(CurlTransportTest, TheEnvironmentNamesAProxy) {
  serve({.body = "from the proxy"});
  ::setenv("http_proxy", server_->url().c_str(), 1);
  const auto head = send({.url = url_of("http://files.invalid/")});
  ::unsetenv("http_proxy");
  ASSERT_THAT(head, IsOk());
  EXPECT_EQ(sink_.body, "from the proxy");
}

}  // namespace
}  // namespace gridscope::http
