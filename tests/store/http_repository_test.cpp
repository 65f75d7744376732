#include "gridscope/store/http_repository.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <mutex>

#include "store/world.hpp"
#include "support/http_server.hpp"

namespace gridscope::store {
namespace {

using test::Fails;
using test::HttpReply;
using test::HttpRequest;
using test::HttpServer;
using test::IsOk;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

// A plain web server: files by path, an ETag for each, and one change to every answer.
class WebServer {
 public:
  using Change = std::function<HttpReply(const HttpRequest&, HttpReply)>;

  void put(const std::string& path, std::string content, std::string etag = "\"v1\"") {
    const std::scoped_lock lock(mutex_);
    files_[path] = {std::move(content), std::move(etag)};
  }
  void set_change(Change change) {
    const std::scoped_lock lock(mutex_);
    change_ = std::move(change);
  }
  HttpServer& server() { return server_; }

 private:
  struct File {
    std::string content;
    std::string etag;
  };

  HttpReply answer(const HttpRequest& request) {
    const std::scoped_lock lock(mutex_);
    const auto file = files_.find(request.path());
    HttpReply reply{.status = 404, .body = "<html>none</html>"};
    if (file != files_.end()) {
      reply = serve_content(request, file->second.content);
      if (!file->second.etag.empty()) reply.fields.push_back({"ETag", file->second.etag});
    }
    return change_ ? change_(request, std::move(reply)) : reply;
  }

  std::mutex mutex_;
  std::map<std::string, File> files_;
  Change change_;
  HttpServer server_{[this](const HttpRequest& request) { return answer(request); }};
};

class HttpRepositoryTest : public ::testing::Test {
 protected:
  HttpRepositoryTest() {
    web_.put("/dir/model.safetensors", pattern(kLargeSize));
    web_.put("/dir/config.json", "{}");
    web_.put("/dir/sub/a%20b.json", "[]");
    cache_ = io::RangeCache::open({.directory = directory_ / "cache"}, wire_.observer).value();
  }

  Result<std::unique_ptr<Repository>> open(std::string_view path, bool with_cache = false) {
    StoreContext context{.client = &wire_.client(), .observer = &wire_.observer};
    context.hub.token = kToken;
    if (with_cache) context.cache = cache_.get();
    const std::string url = web_.server().url(path);
    return open_http_repository({.kind = ReferenceKind::kHttp, .text = url, .location = url},
                                context);
  }

  WebServer web_;
  Wire wire_;
  const test::TempDir directory_;
  std::unique_ptr<io::RangeCache> cache_;
};

TEST_F(HttpRepositoryTest, NamesAFileAndFindsItsSiblings) {
  const auto repository = open("/dir/model.safetensors");
  ASSERT_THAT(repository, IsOk());
  EXPECT_EQ((*repository)->info().kind, ReferenceKind::kHttp);
  EXPECT_EQ((*repository)->info().location, web_.server().url("/dir/"));
  EXPECT_EQ((*repository)->named_file(), "model.safetensors");
  EXPECT_EQ((*repository)->listing(), std::nullopt);
  EXPECT_EQ((*repository)->find("config.json").value(), (FileEntry{"config.json", 2, "v1"}));
  EXPECT_EQ((*repository)->find("sub/a b.json").value()->size, 2U);
  EXPECT_EQ((*repository)->find("missing").value(), std::nullopt);
  EXPECT_THAT((*repository)->find("../x"), Fails(ErrorCode::kInvalidArgument, HasSubstr("..")));
  EXPECT_THAT((*repository)->open("missing"), Fails(ErrorCode::kNotFound, HasSubstr("missing")));
}

TEST_F(HttpRepositoryTest, TakesOtherUrlsForDirectories) {
  for (const char* path : {"/dir", "/dir/"}) {
    const auto repository = open(path);
    ASSERT_THAT(repository, IsOk());
    EXPECT_EQ((*repository)->named_file(), "");
    EXPECT_TRUE((*repository)->find("config.json").value().has_value());
  }
}

TEST_F(HttpRepositoryTest, ReadsTheStartWithTheSizeInOneRequest) {
  const auto repository = open("/dir/model.safetensors");
  ASSERT_THAT(repository, IsOk());
  const auto source = (*repository)->open("model.safetensors");
  ASSERT_THAT(source, IsOk());
  EXPECT_EQ((*source)->size(), kLargeSize);
  EXPECT_EQ((*source)->identity().version, "v1");
  EXPECT_EQ(read_text(**source, 0, 8), pattern(kLargeSize).substr(0, 8));
  EXPECT_EQ(read_text(**source, 8, 1000), pattern(kLargeSize).substr(8, 1000));
  ASSERT_THAT(web_.server().requests(), SizeIs(1));
  EXPECT_EQ(web_.server().requests()[0].range(), "bytes=0-131071");
  EXPECT_EQ((*source)->uncached().distance(), io::Distance::kNear) << "as that request told";
  EXPECT_EQ(read_all(**source), pattern(kLargeSize));
  EXPECT_THAT(web_.server().requests(), SizeIs(2));
}

TEST_F(HttpRepositoryTest, RemembersWhatItFoundUntilThatIsOpened) {
  const auto repository = open("/dir/");
  ASSERT_THAT(repository, IsOk());
  for (int i = 0; i < 3; ++i) ASSERT_THAT((*repository)->find("config.json"), IsOk());
  const auto source = (*repository)->open("config.json");
  ASSERT_THAT(source, IsOk());
  EXPECT_EQ(read_all(**source), "{}");
  EXPECT_THAT(web_.server().requests(), SizeIs(1));
}

TEST_F(HttpRepositoryTest, SendsNoTokenToAWebServer) {
  const auto repository = open("/dir/model.safetensors");
  ASSERT_THAT(repository, IsOk());
  for (const HttpRequest& request : web_.server().requests()) {
    EXPECT_FALSE(request.has_authorization());
  }
}

TEST_F(HttpRepositoryTest, KeepsRangesByUrlAndETag) {
  const auto read = [&] {
    const auto repository = open("/dir/model.safetensors", true);
    return read_all(**(*repository)->open("model.safetensors"));
  };
  EXPECT_EQ(read(), pattern(kLargeSize));
  web_.server().forget_requests();
  EXPECT_EQ(read(), pattern(kLargeSize));
  EXPECT_THAT(web_.server().requests(), SizeIs(1));  // which tells that it is the same file

  const std::string replaced(kLargeSize, 'r');
  web_.put("/dir/model.safetensors", replaced, "\"v2\"");
  EXPECT_EQ(read(), replaced);
}

TEST_F(HttpRepositoryTest, AsksOneByteOfAFileThatItKnows) {
  struct Case {
    const char* etag;
    const char* modified;
    bool keeps;
  };
  for (const Case& known :
       {Case{"\"v1\"", "", true}, Case{"", "Mon, 01 Jan 2024 00:00:00 GMT", true},
        Case{"", "Mon, 01 Jan 2024 00:00:09 GMT", false}}) {
    ASSERT_THAT(cache_->clear(), IsOk());
    web_.put("/dir/model.safetensors", pattern(kLargeSize), known.etag);
    web_.set_change([&](const HttpRequest&, HttpReply reply) {
      reply.fields.push_back({"Date", "Mon, 01 Jan 2024 00:00:09 GMT"});
      if (*known.modified != '\0') reply.fields.push_back({"Last-Modified", known.modified});
      return reply;
    });
    std::uint64_t received = 0;
    for (int run = 0; run < 2; ++run) {
      wire_.observer.clear();
      const auto repository = open("/dir/model.safetensors", true);
      ASSERT_THAT(repository, IsOk());
      EXPECT_EQ(read_all(**(*repository)->open("model.safetensors")), pattern(kLargeSize));
      received = 0;
      for (const auto& read : wire_.observer.reads()) {
        if (read.origin == Origin::kNetwork) received += read.bytes;
      }
    }
    EXPECT_EQ(received == 1, known.keeps) << received;
  }
}

TEST_F(HttpRepositoryTest, RefusesADirectoryWithAQuery) {
  EXPECT_THAT(open("/dir/?token=topsecret"),
              Fails(ErrorCode::kInvalidArgument,
                    AllOf(HasSubstr("may not have a query"), Not(HasSubstr("topsecret")))));
}

TEST_F(HttpRepositoryTest, KeepsNothingThatItCouldNotRecognise) {
  for (const char* etag : {"", "W/\"weak\""}) {
    web_.put("/dir/model.safetensors", pattern(kLargeSize), etag);
    const auto repository = open("/dir/model.safetensors", true);
    ASSERT_THAT(read_all(**(*repository)->open("model.safetensors")), IsOk());
    EXPECT_EQ(cache_->usage().entries, 0U) << etag;
  }
}

TEST_F(HttpRepositoryTest, KeepsASignedUrlSecret) {
  const auto repository = open("/dir/model.safetensors?sig=topsecret", true);
  ASSERT_THAT(repository, IsOk());
  ASSERT_THAT(read_all(**(*repository)->open("model.safetensors")), IsOk());
  ASSERT_THAT((*repository)->find("config.json"), IsOk());
  EXPECT_EQ(web_.server().requests()[0].query(), "sig=topsecret");
  EXPECT_EQ(web_.server().requests().back().query(), "");
  EXPECT_THAT((*repository)->info().location, Not(HasSubstr("topsecret")));
  EXPECT_THAT(wire_.said(), Not(HasSubstr("topsecret")));
  EXPECT_EQ(cache_->usage().entries, 0U);
}

TEST_F(HttpRepositoryTest, NoticesThatTheFileWasReplaced) {
  const auto repository = open("/dir/model.safetensors");
  const auto source = (*repository)->open("model.safetensors");
  ASSERT_THAT(source, IsOk());
  web_.put("/dir/model.safetensors", std::string(kLargeSize, 'x'), "\"v2\"");
  EXPECT_THAT(read_text(**source, 200'000, 100), Fails(ErrorCode::kChanged, HasSubstr("ETag")));
  web_.put("/dir/model.safetensors", std::string(kLargeSize + 1, 'x'), "");
  EXPECT_THAT(read_text(**source, 200'000, 100), Fails(ErrorCode::kChanged, HasSubstr("300001")));
}

TEST_F(HttpRepositoryTest, ReadsAServerThatIgnoresRanges) {
  web_.set_change([](const HttpRequest& request, HttpReply) {
    HttpRequest whole = request;
    whole.fields.clear();
    return serve_content(whole, pattern(kLargeSize));
  });
  const auto repository = open("/dir/model.safetensors");
  ASSERT_THAT(repository, IsOk());
  const auto source = (*repository)->open("model.safetensors");
  ASSERT_THAT(source, IsOk());
  EXPECT_EQ((*source)->size(), kLargeSize);
  EXPECT_EQ(read_text(**source, 0, 100), pattern(kLargeSize).substr(0, 100));
  EXPECT_EQ(read_text(**source, 250'000, 100), pattern(kLargeSize).substr(250'000, 100));
  web_.server().forget_requests();
  EXPECT_EQ(read_text(**source, 260'000, 100), pattern(kLargeSize).substr(260'000, 100));
  EXPECT_THAT(web_.server().requests(), SizeIs(1));  // it is known by now
  const auto warnings = wire_.observer.warnings();
  ASSERT_THAT(warnings, SizeIs(1));
  EXPECT_EQ(warnings[0].code, "RANGE_IGNORED");
}

TEST_F(HttpRepositoryTest, TakesAPageForAMissingFile) {
  web_.set_change([](const HttpRequest&, HttpReply) {
    return HttpReply{.fields = {{"Content-Type", "text/html"}}, .body = "<html>an app</html>"};
  });
  EXPECT_THAT(open("/dir/model.safetensors"), Fails(ErrorCode::kNotFound, HasSubstr("web page")));
  const auto repository = open("/dir/");
  ASSERT_THAT(repository, IsOk());
  EXPECT_EQ((*repository)->find("config.json").value(), std::nullopt);
  EXPECT_THAT((*repository)->open("config.json"),
              Fails(ErrorCode::kNotFound, HasSubstr("web page")));
  EXPECT_THAT(wire_.observer.warnings(), IsEmpty());
}

TEST_F(HttpRepositoryTest, TakesAForbiddenSiblingForAbsentAndSaysSo) {
  web_.set_change([](const HttpRequest& request, HttpReply reply) {
    if (request.path() != "/dir/model.safetensors") reply.status = 403;
    return reply;
  });
  const auto repository = open("/dir/model.safetensors");
  ASSERT_THAT(repository, IsOk());
  EXPECT_EQ((*repository)->find("config.json").value(), std::nullopt);
  EXPECT_EQ((*repository)->find("modules.json").value(), std::nullopt);
  EXPECT_THAT((*repository)->open("config.json"), Fails(ErrorCode::kPermission, HasSubstr("403")));
  ASSERT_THAT(wire_.observer.warnings(), SizeIs(1));
  EXPECT_EQ(wire_.observer.warnings()[0].code, "HTTP_FORBIDDEN");
}

TEST_F(HttpRepositoryTest, ReportsAForbiddenFile) {
  web_.set_change([](const HttpRequest&, HttpReply) {
    return HttpReply{.status = 403, .body = "<Error><Message>Expired</Message></Error>"};
  });
  EXPECT_THAT(
      open("/dir/model.safetensors?sig=topsecret"),
      Fails(ErrorCode::kPermission, AllOf(HasSubstr("Expired"), Not(HasSubstr("topsecret")))));
}

TEST_F(HttpRepositoryTest, ReadsAnEmptyFile) {
  web_.put("/dir/empty.json", "");
  const auto repository = open("/dir/");
  ASSERT_THAT(repository, IsOk());
  EXPECT_EQ((*repository)->find("empty.json").value()->size, 0U);
  const auto source = (*repository)->open("empty.json");
  ASSERT_THAT(source, IsOk());
  EXPECT_EQ(read_all(**source), "");
}

TEST_F(HttpRepositoryTest, FollowsRedirects) {
  web_.set_change([this](const HttpRequest& request, HttpReply reply) {
    if (request.host() == "localhost") return reply;
    return HttpReply{
        .status = 302,
        .fields = {{"Location", web_.server().localhost_url(request.path()) + "?sig=topsecret"}}};
  });
  const auto repository = open("/dir/model.safetensors");
  ASSERT_THAT(repository, IsOk());
  const auto source = (*repository)->open("model.safetensors");
  ASSERT_THAT(source, IsOk());
  EXPECT_EQ(read_all(**source), pattern(kLargeSize));
  web_.server().forget_requests();
  EXPECT_EQ(read_text(**source, 200'000, 5), pattern(kLargeSize).substr(200'000, 5));
  EXPECT_THAT(web_.server().requests(), SizeIs(1));  // straight to the other host
  EXPECT_THAT(wire_.said(), Not(HasSubstr("topsecret")));
}

TEST_F(HttpRepositoryTest, NeedsASizeFromTheServer) {
  web_.set_change([](const HttpRequest&, HttpReply) {
    return HttpReply{.body = pattern(kLargeSize), .framing = HttpReply::Framing::kChunked};
  });
  EXPECT_THAT(open("/dir/model.safetensors"), Fails(ErrorCode::kUnsupported, HasSubstr("long")));
}

TEST_F(HttpRepositoryTest, IsNotReadOffline) {
  StoreContext context{.client = &wire_.client(), .observer = &wire_.observer};
  context.hub.offline = true;
  const std::string url = web_.server().url("/dir/");
  EXPECT_THAT(
      open_http_repository({.kind = ReferenceKind::kHttp, .text = url, .location = url}, context),
      Fails(ErrorCode::kUnavailable, HasSubstr("HF_HUB_OFFLINE")));
  EXPECT_THAT(web_.server().requests(), IsEmpty());
}

}  // namespace
}  // namespace gridscope::store
