#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/temporary.h"

namespace sator {

/// A folder into which a command writes its results, and the list of the files that it wrote there: name, size and digest of
/// each, in `.sator-COMMAND.json`. A later run replaces or removes the files of that list as long as they are as they were
/// written; every other file is left as it is, and is an error where it stands in the way of a result.
/// One process at a time works in a folder.
class OwnedFolder {
 public:
  /// A name within the folder, with '/' between its parts, and the content.
  using Files = std::vector<std::pair<std::string, std::string>>;

  /// Makes the folder.
  ///   replace   a file in the way is replaced all the same
  /// Errors: it cannot be made; another process works in it; its list names what is not in the folder.
  OwnedFolder(fs::path folder, std::string command, bool replace = false);
  ~OwnedFolder();
  OwnedFolder(const OwnedFolder&) = delete;
  OwnedFolder& operator=(const OwnedFolder&) = delete;

  /// Errors: one of these names is taken by what this command did not write, or by what was changed since; a folder on
  /// the way to it is a link or a file. Called before long work, so that it is not done in vain.
  void require_free(const std::vector<std::string>& names) const;
  /// The same for whatever lies below these folders under one of these endings: where the names are known only later.
  void require_free_below(const std::vector<std::string>& folders, const std::vector<std::string>& endings) const;

  /// Takes a file as this command's own that it wrote before it kept lists. The caller knows that it did.
  void adopt(const std::string& name);

  /// Writes a result under a temporary name. A file of another with these very bytes stays another's: nothing is to be done.
  /// Errors: the name is taken, as in require_free; the folder cannot be written.
  void put(const std::string& name, std::string_view bytes);
  /// Puts the results in place of those of the list, in the order in which they were written. A process that is killed
  /// meanwhile leaves each file old or new, and a list that knows it.
  ///   gone_first   names without which the other files pass for nothing, removed before any is replaced
  /// Errors: the folder cannot be written.
  void finish(const std::vector<std::string>& gone_first = {});
  /// Both.
  void replace(const Files& files);

 private:
  struct Version {
    int64_t bytes = 0;
    std::string digest;
    auto operator<=>(const Version&) const = default;
  };
  /// A name has two versions while the files are being replaced.
  using List = std::map<std::string, std::vector<Version>>;

  void read_list();
  void write_list(const List& list) const;
  std::optional<std::string> in_the_way(const std::string& name) const;
  bool is_as_listed(const std::string& name) const;
  bool is_there_already(const std::string& name, std::string_view bytes) const;
  void remove_stale() const;

  fs::path folder_, list_file_;
  std::string command_;
  bool replace_;
  List list_, now_;                    // of the run before; of this one
  std::vector<std::string> staged_;    // names of now_, in their order
  std::optional<TemporaryFolder> at_;  // where they wait, called by their numbers
  int lock_ = -1;                      // of the folder itself
};

}  // namespace sator
