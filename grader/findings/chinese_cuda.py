"""The catalogue in Traditional Chinese: what breaks the rules of CUDA."""

from __future__ import annotations

_INDEX = "請檢查索引是否超出陣列大小[{beyond_first}]。"
_TIMEOUT = "請檢查迴圈的條件，以及它是否在等待無法執行的 thread 或 block。"
_SETUP = "請檢查 barrier 的設定：由一個 thread、在其他 thread 使用之前、以實際到達的 thread 數來設定。"
_LUCK = "在 GPU 上可能碰巧會對。"
_ACCESS = "{did}了{relation} {bytes} 位元組"
_SET = "[；第 {set_line} 行設定 `{set_name}`][，第 {other_set_line} 行設定 `{other_set_name}`]"
_LOOSE = "[；{file}:{loose_line} 允許 `{loose_name}` 等於 {loose_end}，超過最後一個：應為 {loose_sign}]" + _SET
_RACE = "競爭（race）：{here} {does} {named}，同時另一個{whom}在 {there} {other_does}它"
_COPIED = "競爭（race）：{here} {does} {named}，而 {there} 開始的非同步複製還在進行"
_ASYNC = "競爭（race）：{here} {does} {named}，而 {there} 的非同步操作正在使用它"

PHRASES = {
    "memory_named": "`{array}`（{size} 位元組，配置於 {allocated}）",
    "memory_allocation": "[{allocated} 的 ]{by} 配置的 {size} 位元組[（第 {serial} 次配置）]",
    "memory_argument": "參數 `{array}`（{size} 位元組）",
    "memory_variable": "{by}（{size} 位元組）",
    "memory_shared": "shared 變數 {array}（{size} 位元組）",
    "memory_dynamic": "動態 shared memory {array}（{size} 位元組）",
    "memory_block": "shared memory",
    "relation_just_past": "緊接在 {memory} 結尾之後的[{freed}]",
    "relation_past": "{memory} 結尾之後 {past} 位元組處的[{freed}]",
    "relation_before": "{memory} 之前 {before} 位元組處的[{freed}]",
    "relation_inside": "{memory} 中位移 {offset} 處的[{freed}]",
    "relation_whole": " shared memory 的",
    "relation_null": "空指標所指的",
    "relation_null_offset": "空指標加位移所指的",
    "relation_nowhere": (
        "不屬於任何配置的位址上的（如果這是主機指標，例如 malloc、new 或區域變數，請先用 cudaMemcpy 複製資料，"
        "或用 cudaMallocManaged 配置）"
    ),
    "spot": "{memory} 的位移 {offset}",
    "named_array": "`{array}`",
    "named_allocated": "配置於 {allocated} 的記憶體",
    "named_unknown": "記憶體",
    "called_once": "（呼叫於第 {lines} 行）",
    "called": "（呼叫於第 {lines} 行）",
    "same_line": "同一行",
    "beyond_first": "，也包括最後一個 block 和最後一個 thread",
    "detail": "{memory} 的位移 {offset}[；另一方：thread {other_thread}][，{BLOCK} {other_block}]",
}

WORDS = {
    "none": {"none": "其中一次都還沒有發生（或者等待了錯誤的 parity）"},
    "last": {"call": "最後一次 CUDA 呼叫"},
    "stream": {"default": "預設", "this": "這個"},
    "some": {"threads": "一部分 thread"},
    "whom": {"blocks": " {BLOCK} ", "warps": " warp ", "lanes": "同一 warp 的 thread ", "copy": " thread "},
    "space": {"shared": "shared", "local": "local", "global": "global"},
    "freed": {"freed": "（已經釋放）"},
    "bad_free": {
        "no_allocation": "不是一塊配置的開頭",
        "freed": "已經釋放過",
        "other_function": "是由另一個函式配置的",
    },
    "host_does": {"use": "使用", "write": "寫入", "read": "讀取"},
    "others": {
        "all": "block 中其他所有 thread 也都在等待",
        "apart": (
            "仍在執行的 thread 也都在等待，或是同一 warp 中位於這個函式之外的 lane，模擬器無法執行它們："
            "請把這個函式宣告為 __forceinline__"
        ),
    },
    "swizzle": {
        "none": "沒有 swizzle",
        "32": "32 位元組的 swizzle",
        "64": "64 位元組的 swizzle",
        "128": "128 位元組的 swizzle",
    },
}

SENTENCES: dict[str, tuple[str, str]] = {
    "past_parameters": ("{did}了 kernel 參數結尾之後的 {bytes} 位元組", _INDEX),
    "misaligned": (
        "在未對齊的位址{did}了 {space} memory 的 {bytes} 位元組：位址必須是 {bytes} 的倍數[，但多了 {past} 位元組]",
        "float4 之類的向量型別，位址必須是其大小的倍數。",
    ),
    "cluster_block_ended": (
        "{did}了 cluster 中已經結束的 block {peer} 的 shared memory：請讓所有 block 在結束之前都到達 cluster 的 barrier",
        "",
    ),
    "cluster_block_missing": ("{did}了 cluster 中不存在的 block {peer} 的 shared memory", _INDEX),
    "cluster_outside": (
        "{did}了 cluster 中 block {peer} 的 {size} 位元組 shared memory 位移 {offset} 處的 {bytes} 位元組",
        _INDEX,
    ),
    "cluster_block_may_end": (
        "使用了 cluster 中 block {peer} 的 shared memory，而它可能已經結束：沒有任何機制讓它等待這次存取",
        "請讓所有 block 在最後一次存取彼此的 shared memory 之後到達 cluster 的 barrier（cluster.sync()）。",
    ),
    "system_shared": (
        "{did}了 shared memory 位址 {offset} 的 {bytes} 位元組；kernel 的變數從 {begin} 開始，前面是系統用的",
        "請取 shared 變數的位址（__cvta_generic_to_shared），不要用數字。",
    ),
    "past_dynamic_shared": (
        f"{_ACCESS}[，啟動於 {{launch}}][，大小在 {{computed}} 計算]",
        "請在啟動時要求更多（<<<…>>> 的第三個參數），或修正索引。",
    ),
    "past_shared": (
        f"{_ACCESS}；這個 block 有 {{shared}} 位元組的 shared memory（靜態 {{static}}、動態 {{dynamic}}）",
        _INDEX,
    ),
    "past_local": (
        "{did}了 local memory（區域陣列）位移 {offset} 處的 {bytes} 位元組，而這個 thread 只有 {size} 位元組",
        _INDEX,
    ),
    "past_local_arrays": (
        "{did}了 thread 的區域陣列結尾之後的 {bytes} 位元組，位移 {offset}；它們共 {size} 位元組",
        "請檢查索引是否超出陣列大小。",
    ),
    "past_the_end": (f"{_ACCESS}{_LOOSE}", _INDEX),
    "before_start": (f"{_ACCESS}{_SET}", _INDEX),
    "outside": (_ACCESS, _INDEX),
    "use_after_free": (_ACCESS, "請在最後一次使用之後才釋放記憶體。"),
    "null_pointer": (_ACCESS, "請檢查配置是否成功，以及指標是否在啟動之前設定。"),
    "no_allocation": (_ACCESS, _INDEX),
    "invalid_access": ("在任何配置之外{did}了 {space} memory 的 {bytes} 位元組[，{near}]", _INDEX),
    "uninitialised": (
        "讀取了 {spot}，配置之後從未寫入",
        "請在讀取之前先寫入：cudaMemset、cudaMemcpy，或讓 kernel 存入每個元素。",
    ),
    "uninitialised.copied": (
        "讀取了 {spot}，配置之後從未寫入：{other} 的複製沒有填滿它",
        "請比較複製的大小（以位元組計）、位置與配置的大小。",
    ),
    "uninitialised_read": (
        "讀取了 {bytes} 位元組從未寫入的記憶體",
        "請在讀取之前先寫入：在 kernel 中或用 cudaMemset。",
    ),
    "unwritten_shared": ("讀取了 {spot}，block 中沒有 thread 寫入過", "請在讀取之前先存入每個元素。"),
    "unwritten_shared.gap": (
        "讀取了 {spot}，block 中沒有 thread 寫入過；第 {stores} 行[（在第 {loops} 行的迴圈中）]存入了它前後的值",
        "兩行計算索引時用的列長度（stride、padding）是否相同？",
    ),
    "unwritten_shared.gap_of_two": (
        "讀取了 {spot}，block 中沒有 thread 寫入過；第 {stores} 行[（在第 {loops} 行的迴圈中）]存入了它前面的值，第 {stores_after} "
        "行存入了後面的值",
        "兩行計算索引時用的列長度（stride、padding）是否相同？",
    ),
    "unwritten_shared.returned": (
        "讀取了 {spot}，block 中沒有 thread 寫入過；{threads} 個 thread 中有 {returned} 個先返回了[，在第 {return_line} 行]",
        "如果它們應該存入一部分，請不要讓任何 thread 在最後一次載入和最後一個 {BARRIER} 之前返回。",
    ),
    "unwritten_shared.part": (
        "讀取了 {spot}，block 中沒有 thread 寫入過；{words} 個字組中有 {without} 個沒有值",
        "請讓 block 的 thread 在讀取之前存入全部，例如用步長等於 thread 數的迴圈。",
    ),
    "unwritten_shared.part_after": (
        "讀取了 {spot}，block 中沒有 thread 寫入過；{words} 個字組中有 {without} 個沒有值；第 {stores} 行[（在第 {loops} 行的迴圈中）]"
        "存入了它前面的字組",
        "請讓 block 的 thread 在讀取之前存入全部，例如用步長等於 thread 數的迴圈。",
    ),
    "unwritten_local": ("讀取了區域陣列或變數的 {bytes} 位元組，這個 thread 從未寫入", "請先給每個元素一個值。"),
    "never_written": (
        "[{function}：]複製到主機的 {bytes} 位元組中有 {count} 位元組從未寫入，從 {spot} 開始[；grid 設定於 {grid}]",
        "請檢查 kernel 是否寫入每個元素（包括最後一個 block），以及複製的長度是否等於結果的長度。",
    ),
    "never_written.argument": (
        "`{array}` 的 {bytes} 位元組中有 {count} 位元組從未寫入，從第 {offset} 位元組開始[；其餘由第 {at} 行寫入][，以第 {guard_line} 行的條件為準]"
        "[；`{narrow}`（第 {narrow_line} 行）的型別是 {type}，最大到 {most}][；grid 設定於 {grid}]",
        "請檢查 kernel 是否寫入每個元素（包括最後一個 block），以及是否對所有元素執行。",
    ),
    "never_written.nothing": ("`{array}` 從未寫入", "請檢查 solve 是否把它交給會寫入它的 kernel，或者把結果複製到它。"),
    "race": (_RACE, f"請在兩次存取之間放 {{BARRIER}}。{_LUCK}"),
    "race.barrier": (f"{_RACE}；請在兩者之間放 {{barrier}}[，在第 {{after}} 行之後]", _LUCK),
    "race.after_copy": (
        f"{_RACE}；請先等待複製（__pipeline_wait_prior(0)），再於兩者之間放 {{barrier}}[，在第 {{after}} 行之後]",
        _LUCK,
    ),
    "race.branch": (
        f"{_RACE}。{{file}}:{{present}} 的 barrier 沒有把它們分開：它在第 {{branch}} 行的 `if` 裡，有些 thread 不會進入。"
        "請把它移到 `if` 之後",
        _LUCK,
    ),
    "race.loop_end": (
        f"{_RACE}，發生在迴圈的另一次執行中[。第 {{present}} 行的 barrier 只在同一次之內把它們分開]：請在迴圈結尾、"
        "{file}:{closes} 關閉迴圈之前放 {barrier}",
        _LUCK,
    ),
    "race.update": (
        _RACE,
        f"如果多個 thread 要加到這個位置，請用 atomic（{{ATOMIC}}）。否則請在讀和寫之間放 {{barrier}}。{_LUCK}",
    ),
    "race.check": (
        f"{_RACE}：在其中一個 thread 佔用之前，可能有好幾個 thread 都看到這個位置是空的",
        f"請用一個 atomic 同時檢查並佔用，再看它傳回什麼：atomicCAS、atomicMin 或 atomicExch。{_LUCK}",
    ),
    "race.at_once": (_RACE, f"請只讓一個 thread 寫入、各寫各的位置，或用 atomic。{_LUCK}"),
    "race.blocks": (
        f"{_RACE}，而 {{BLOCK}} 之間不會互相等待{_LOOSE}",
        "請讓每個 {BLOCK} 寫入不同的位置（位址是否少了 batch 或列的位移？），使用 atomic（{ATOMIC}），或啟動兩個 kernel。"
        f"{_LUCK}",
    ),
    "race.cluster": (
        f"{_RACE}，而 cluster 中的 block 沒有互相等待",
        f"請讓兩個 block 在兩次存取之間到達 cluster 的 barrier（cluster.sync()），或使用 barrier 物件。{_LUCK}",
    ),
    "race.launches": (
        "競爭（race）：{here} {does} {named}，而與它重疊的 kernel 在 {there} {other_does}它",
        "請讓後面 kernel 的每個 thread 在碰到前面 kernel 使用的資料之前呼叫 cudaGridDependencySynchronize()。",
    ),
    "race.copy": (
        _COPIED,
        "還沒有等待這塊記憶體的非同步複製：請在這次存取之前呼叫 __pipeline_wait_prior(0)（cp.async.wait_group 0），"
        f"然後 __syncthreads()。{_LUCK}",
    ),
    "race.bulk_copy": (_COPIED, f"請在這次存取之前於複製的 barrier 物件等待。{_LUCK}"),
    "race.wrong_parity": (
        f"{_COPIED}：第 {{wait}} 行的等待立刻通過了，因為那個 parity 的階段早已完成",
        "請用複製所在階段的 parity 等待：barrier 物件的第一個階段是 0，之後依序為 1、0……",
    ),
    "race.copy_object": (
        f"{_RACE}：這個 warp 之後還沒有在複製的 barrier 物件等待",
        "請讓使用 tile 的每個 warp 先在複製的 barrier 物件等待。",
    ),
    "race.copy_overwrites": (
        f"{_RACE}：複製沒有等待它",
        "請讓使用 tile 的所有 thread 在複製覆寫它之前到達 barrier，或到達複製 thread 所等待的 barrier 物件。",
    ),
    "race.operand": (
        _ASYNC,
        "請先在所有 warp 等待這個乘積的群組（wgmma.wait_group），再到達 barrier，然後才覆寫運算元。",
    ),
    "race.bulk_read": (
        _ASYNC,
        "請讓複製的 thread 等到它的群組已讀取（cp.async.bulk.wait_group.read 0），再到達 barrier，然後才覆寫記憶體。",
    ),
    "race.object_unfenced": (
        "競爭（race）：{here} 非同步使用 {named}，而 {there} 初始化之後沒有 proxy fence",
        "請讓初始化 barrier 物件的 thread 之後執行 fence.mbarrier_init（或 fence.proxy.async），再到達 barrier。",
    ),
    "race.unfenced": (
        "競爭（race）：{here} 非同步讀取 {named}，而 {there} 寫入之後沒有 proxy fence",
        "請讓每個存入的 thread 在 barrier 之前、存入之後執行 fence.proxy.async.shared::cta。",
    ),
    "outdated_read": (
        "競爭（race）：{here} {does} {named}，同時另一個 thread 在 {there} {other_does}它：一般的讀取，讀的是別人以 atomic 更新的字組",
        "如果過時的值只是浪費時間，就沒有害處；否則請用 atomic 或 volatile 讀取。",
    ),
    "too_many_barriers": ("這次啟動的 barrier 太多：第 {limit} 個之後的競爭偵測不到", "請用較小的問題檢查競爭。"),
    "copy_not_awaited": (
        "主機程式{host_does}了 {memory}，而 {there} 的 {function} 可能還在{how}（copy）",
        "請先等待複製所在的 stream（cudaStreamSynchronize）。",
    ),
    "copy_before_kernel": (
        "{stream} stream 中對 {memory} 的複製（{how}）沒有等待另一個 stream 中於 {there} 啟動的 kernel {launched}",
        "請在 kernel 的 stream 中複製，或先等待那個 stream。",
    ),
    "barrier_number": ("barrier 編號 {id}：只有 16 個，0 到 15", _SETUP),
    "barrier_threads": ("{threads} 個 thread 的 barrier：數目必須是 32 的倍數", _SETUP),
    "barrier_counts_differ": (
        "barrier {id} 在這裡用於 {threads} 個 thread，在別處用於 {elsewhere} 個",
        "請讓同一個 barrier 的所有呼叫使用相同的 thread 數。",
    ),
    "barrier_in_branch": (
        "{BARRIER} 位於只有[ warp 中 lane {lanes} ][{some}]會進入的分支裡",
        "請把 {BARRIER} 移出分支，讓 block 的所有 thread 到達同一個呼叫。",
    ),
    "reduction_in_branch": (
        "帶有歸約的 barrier（例如 __syncthreads_count）只有 warp 的一部分 thread 到達",
        "請把它移出分支，讓 block 的所有 thread 到達同一個呼叫。",
    ),
    "mask_without_caller": (
        "lane {lanes} 呼叫了 warp 函式，但遮罩 {mask} 不包含它們",
        "請在遮罩中列出每個呼叫的 lane。",
    ),
    "mask_not_reached": (
        "warp 函式的遮罩 {mask} 包含 lane {lanes}，但它們沒有到達這個呼叫（進入了另一個分支）",
        "請讓遮罩中的所有 lane 到達同一個呼叫，或在分支之前用 __ballot_sync 計算遮罩。",
    ),
    "mask_wrong_argument": ("barrier 或 warp 函式的遮罩或參數錯誤", "呼叫 warp 函式的每個 thread 都必須在遮罩中。"),
    "syncwarp_unmet": (
        "lane {lanes} 在 __syncwarp() 等待遮罩 {mask} 中的 lane {missing}，但它們沒有呼叫",
        "請把 __syncwarp() 移到遮罩中所有 lane 都會到達的地方，或只列出會到達的 lane。",
    ),
    "deadlock_barrier": (
        "死結：{warps} 個 warp 中有 {waiting} 個在 barrier {id} 等待 {expected} 個 thread，已到達 {arrived} 個；block 中沒有其他 "
        "warp 能執行",
        "block 的每個 thread 到達 barrier 的次數必須相同。",
    ),
    "deadlock_cluster": (
        "死結：這個 thread 在 cluster 的 barrier 等待，已有 {arrived} 個 thread 到達，其他 thread 也都在等待",
        _TIMEOUT,
    ),
    "deadlock_object": (
        "死結：這個 thread 在 barrier 物件（cuda::barrier、cuda::pipeline、mbarrier）等待 {expected} 次到達中的 {pending} 次"
        "[，以及比複製多 {lacking} 位元組（第 {expect} 行的 expect_tx）][，而複製比第 {expect} 行的 expect_tx 多 {excess} "
        "位元組][，{none}]，而且 {others}",
        _TIMEOUT,
    ),
    "deadlock_registers": (
        "死結：setmaxnreg.inc 等待每個 thread {count} 個暫存器，其他 warp 只留下 {left} 個：block 啟動時每個 thread 有 "
        "{registers} 個，共 {warps} 個 warp，它們合計要求更多",
        _TIMEOUT,
    ),
    "endless_loop": ("{seconds} 秒後仍在這一行的迴圈中，可能永遠不會結束", _TIMEOUT),
    "endless_in_function": (
        "{seconds} 秒後仍在執行；這個 thread 在函式中這一行的迴圈等待，而同一 warp 的 lane {lanes} 不在同一個呼叫裡；"
        "如果它在等這些 lane，模擬器無法執行它們，計算能力 7.0 之前的 GPU 也不行：請讓一個 warp 只用一個 lane 取得鎖，"
        "或把函式宣告為 __forceinline__",
        _TIMEOUT,
    ),
    "loop_never_ends.unchanged": ("這一行的迴圈永遠不會結束：它的條件所依賴的值都不再改變", _TIMEOUT),
    "loop_never_ends.waits": (
        "這一行的迴圈永遠不會結束：它等待記憶體中的一個值，而 kernel 的其他 thread 都已結束或也在等待",
        _TIMEOUT,
    ),
    "launches_endless": (
        "kernel {launched} 正在執行，是程式的第 {launch} 次啟動",
        "請檢查啟動 kernel 的迴圈：它可能永遠不會結束，或每次啟動做的工作太少。",
    ),
    "host_endless": ("主機程式仍在這裡執行[；這是它的{last}]", "請檢查這一行外面的迴圈條件。"),
    "kernel_stopped": (
        "程式被停止時 kernel {launched} 仍在執行",
        "請檢查它的迴圈，以及它是否在等待無法執行的 thread。",
    ),
    "tool_found": ("{what}", ""),
    "trap": ("kernel 執行了 trap 指令（__trap）", ""),
    "assertion": ("{there} 的 assertion `{condition}` 失敗", ""),
    "bad_function_pointer.host": ("透過不是 device 函式的指標呼叫：它的位址是在主機上取的嗎？", ""),
    "bad_function_pointer.prototype": ("透過指標呼叫參數或回傳值不同的函式", "請把指標宣告成該函式本身的型別。"),
    "bad_function_pointer.null": ("透過空指標呼叫函式", ""),
    "alloca_too_large": ("alloca {bytes} 位元組：每個 thread 的 local memory（堆疊）有 {size} 位元組，已用 {used}", ""),
    "local_overflow": ("local memory（堆疊）溢位：每個 thread {size} 位元組", ""),
    "stack_overflow": ("kernel {launched} 中堆疊溢位", "請找不會結束的遞迴，或很大的區域陣列。"),
    "kernel_free": ("釋放的位址不是 kernel 中 malloc 回傳的", _INDEX),
    "leak": ("記憶體洩漏：{memory} 從未釋放", "請釋放所配置的記憶體：執行較久的程式會用盡記憶體。"),
    "bad_free": ("[{function}：]位址{bad_free}[，由 {by} 配置]", "每塊配置請釋放一次，並用對應的函式。"),
    "host_use_after_free": ("主機程式{host_does}了已在[ {there} ]釋放的記憶體", "請在最後一次使用之後才釋放記憶體。"),
    "host_dereference": (
        "主機程式對 device 指標取值，讀寫的是{relation}記憶體",
        "請先用 cudaMemcpy 複製資料，或用 cudaMallocManaged 配置。",
    ),
    "host_crash": (
        "主機程式存取了位址 {address}，那裡沒有對應的記憶體（segmentation fault）",
        "這發生在主機程式：請檢查 malloc 和 fopen 的回傳值、程式是否得到參數，以及主機陣列的索引。",
    ),
    "registered_unmapped": (
        "kernel {launched} 使用了曾經註冊、但已取消對應的主機記憶體",
        "請在釋放記憶體之前呼叫 cudaHostUnregister，之後不要再啟動使用它的 kernel。",
    ),
    "emulator_failed": (
        "模擬器本身在 kernel {launched} 中以 {signal} 失敗：這是評分程式的錯誤，不是這個程式的",
        "請向課程人員回報；程式仍可在 GPU 上執行（--engine cuda）。",
    ),
}
