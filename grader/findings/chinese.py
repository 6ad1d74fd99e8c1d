"""The catalogue of findings in Traditional Chinese (zh-TW), with the same kinds and names as english.py."""

from __future__ import annotations

from grader.findings import chinese_calls, chinese_cuda
from grader.findings.catalogue import Catalogue

_PHRASES = {
    "where": "[{place}][：kernel {kernel}][，{BLOCK} {block} 的 thread {thread}]",
    "then": "：",
    "continues": " ",
    "stop": "。",
    "space": "",
    "and": "和 ",
    "comma": "、",
    "look": "請看 {quoted}。",
    "passes": "測試通過，但是：{cause}",
    "seen": "（以檢查執行 {test} 時看到。）",
}

_WORDS = {
    "did": {"read": "讀取", "write": "寫入", "update": "更新", "copy": "複製"},
    "does": {"read": "讀取", "write": "寫入", "update": "更新", "copy": "以 cp.async 複製到"},
    "other_does": {"read": "讀取", "write": "寫入", "update": "更新", "copy": "以 cp.async 複製到"},
    "meaning": {
        "no_scale": "缺少縮放",
        "scale_twice": "縮放了兩次",
        "inverse": "除以了縮放，應為乘上",
        "base_two": "以 2 為底而非 e：請乘上 log2(e)",
        "negative": "正負號相反",
        "as_integer": "scale 是 float，但它的位元被當成整數",
        "unused": "所有 key 的權重都相同；縮放是否因整數除法而為 0？",
    },
}

_LEFT_OUT = "[kernel {left_out}（第 {left_line} 行）從未啟動。]"

_SENTENCES: dict[str, tuple[str, str]] = {
    "no_launch": ("程式沒有啟動任何 kernel", "請在複製到裝置之後、複製回主機之前啟動 kernel。"),
    "kernel_not_launched": ("kernel {launched} 從未啟動，所以什麼都沒有計算：請啟動它", ""),
    "kernel_empty": ("kernel {launched} 是空的，所以什麼都沒有計算：請寫出它的內容", ""),
    "launch_not_reached": (
        "沒有 kernel 執行過：程式在到達[第 {loop_line} 行迴圈內的]啟動之前就結束了[，第 {leave_line} 行先離開][（第 {end_line} 行設定 `{end}`）]",
        "",
    ),
    "not_copied_back": (
        "沒有任何結果複製回主機：請在最後一次啟動之後以 cudaMemcpy(…, cudaMemcpyDeviceToHost) 複製",
        "",
    ),
    "copied_the_wrong_way": (
        "沒有任何結果複製回主機：最後一次啟動之後，這裡卻複製到裝置（cudaMemcpyHostToDevice）；"
        "應為 cudaMemcpyDeviceToHost，並把主機的陣列放在前面",
        "",
    ),
    "copied_in_part": (
        "結果有 {needed} 位元組，只有 {copied} 位元組複製回主機，而這些是正確的",
        "大小以位元組計：值的個數乘上 sizeof。",
    ),
    "input_copied_back": (
        "複製回主機的是 `{copied}`，但沒有 kernel 寫入它；kernel 寫入的 `{written}` 卻沒有複製回來",
        "",
    ),
    "bytes_without_sizeof": ("{call} 的大小以位元組計，這裡卻是值的個數：請乘上 sizeof({element})", ""),
    "maximum_starts_high": (
        "最大值 `{name}` 從 {start} 開始，比所有值都大，所以每個指數都是 0、結果是 0/0：請從 −INFINITY 開始",
        "",
    ),
    "integer_sum": ("`{name}` 是整數，小數部分都會遺失：請宣告為 float", ""),
    "narrow_sum": ("`{name}` 溢位：錯誤的值都相差 {type} 所能表示範圍的倍數；請宣告為 int", ""),
    "integer_division": ("{left} / {right} 是整數除法，結果為 {result}：請寫 {left}.0f / {right}", ""),
    "guard_makes_zero": (
        "`{index}` ≥ `{limit}` 的 thread 在這裡就返回，所以 `{index} / {limit}` 永遠是 0："
        "請把 `{index}` 和有工作的 thread 數比較",
        "",
    ),
    "step_wrong": ("到這一行為止的值都正確；這一行計算 `{array}`，應為 {expected}[，實際為 {found}]", ""),
    "scale_wrong": ("指數隨 {of} 增長的倍率是 {slope}，應為 {expected}[（{meaning}）]", ""),
    "not_rescaled": (
        "執行中的最大值變大時，累加至今的 {array} 沒有乘上 exp(m_old − m_new)：舊的項與新加入的項相對於不同的最大值",
        "",
    ),
    "rescaled_wrongly": (
        "執行中的最大值變大時，累加至今的 {array} 乘上了錯誤的係數[（用於 {other}）]：應為 exp(m_old − m_new)",
        "",
    ),
    "old_sum_left_out": ("累加至今的 {array} 已除以舊的 l，加入新的項之前沒有先乘回舊的 l", ""),
    "weight_of_other_maximum": (
        "這個權重所減的最大值，與它所加入的 {array} 不同[（{other}）]：請減去新的執行中最大值",
        "",
    ),
    "terms_missing": (
        "{array} 的加總少了 {count} 個 {over}（{numbers}[：每 {tile} 個少一個]）[，用於 {other}]",
        "請檢查迴圈的起點、終點[（第 {end_line} 行設定 `{end}`）]，以及它跳過了什麼。",
    ),
    "terms_repeated": ("{array} 重複計算了 {over} {numbers}", ""),
    "terms_unseen": ("{array} 計入了被遮罩隱藏的 {over} {numbers}", ""),
    "carried_over": (
        "{right} 仍含有 {left} 的值：請在加總前重設 {array}[；第 {set_line} 行只在第 {loop_line} 行的迴圈之前設定 `{set_name}` 一次]",
        "",
    ),
    "sums_mixed": ("{left} 與 {right} 的項加在一起，但它們是不同的總和", ""),
    "start_wrong": ("{array} 從 {value} 開始，應從 0 開始", ""),
    "padding_added": ("{array} 計入了 exp(0 − m) = {value}：屬於不存在或未載入的 key", ""),
    "maximum_wrong": ("exp 之前從分數減去了 {value}，它不是這一列分數的最大值", ""),
    "operands_wrong": ("{left} 與 {right} 相乘[（載入於 {other}）]：兩者的索引並不對應", ""),
    "other_input": (
        "{left} 與 {right} 相乘：應使用 {wanted} 之處用了 {found}[（載入於 {other}）][；第 {set_line} 行設定 `{set_name}`]",
        "",
    ),
    "other_result": ("{found} 被存為 {array}", ""),
    "stored_elsewhere": (
        "第 {unit_found} 單元第 {row_found} 列第 {column_found} 行的值，被存到 {array} 第 {unit_expected} 單元"
        "第 {row_expected} 列第 {column_expected} 行",
        "",
    ),
    "result_scaled": ("{array} 是正確值的 {factor} 倍", ""),
    "difference_wrong": ("從 {array} 減去了 {found}，應減去 {less} = {expected}", ""),
    "keys_unused": (
        "第 {keys} 個 key[（{of} 個中的 {count} 個）]在任何列都沒有權重[：每 {tile} 個 key 的 tile 皆如此]",
        "請檢查走訪 key 的迴圈的起點、終點，以及它跳過了什麼。",
    ),
    "values_of_other_keys": (
        "第 {key} 個 key 的權重乘上了 V 的第 {other} 列[：每 {tile} 個 key 的 tile 都用最前面的 {tile} 列]",
        "請檢查載入 V 時的位移。",
    ),
    "row_sum_not_subtracted": ("一列的 dP 全部相等時 {array} 不為 0：沒有從 dP 減去 D（該列 dO ∘ O 的總和）", ""),
    "columns_unused": ("Q 和 K 的第 {columns} 行對分數沒有影響：請對全部 {of} 行加總", ""),
    "other_unit_read": ("{label} 的結果用了 {other_unit} 的 {array}[：第 {set_line} 行設定 `{set_name}`]", ""),
    "rows_not_normalised": ("第 {row} 列的權重總和是 {sum}，應為 1", ""),
    "rows_not_normalised.undivided": ("第 {row} 列的權重總和是 {sum}：指數沒有除以它們的總和", ""),
    "rows_not_normalised.maximum": (
        "第 {row} 列的權重總和是 {sum}，是 e 的該列最大值次方：最大值只從指數或總和的其中一方減去",
        "",
    ),
    "mask_wrong.causal": ("第 {query} 個 query 只使用 key {found}，如同 causal mask：應使用 key {expected}", ""),
    "mask_wrong": ("第 {query} 個 query 使用了 key {found}，應使用 key {expected}", ""),
    "transposed": ("{array} 讀取時列與行互換[，每 {tile} 列的 tile 皆如此]", "請檢查它如何存放、如何讀取。"),
    "inputs_exchanged": ("結果符合 {first} 和 {second} 互換：輸入的順序是 {order}", ""),
    **{
        f"smallest_input{how}": (
            f"{said}只有 {{given}}，{{zeros}} 其餘全為 0 時，{{first}} 是 {{got}}，應為 {{expected}}",
            "[{tensor} 的前 {before} 個值沒有問題。]",
        )
        for how, said in (
            ("", ""),
            (".infinite", "檢查：對大數取 exp（是否先減去最大值？）、0/0 或 inf − inf。"),
            (".missing", f"{{right_at}} 缺少 {{element}}。{_LEFT_OUT}"),
            (".missing_in_part", f"{{right_at}} 缺少 {{element}}。{_LEFT_OUT}"),
            (".moved", "{element} 算進了 {got_at}，但應屬於 {right_at}。"),
            (".extra", "{element} 算進了 {got_at}，但不應屬於那裡。"),
            (".scaled", "{element} 在 {right_at} 中算了 {factor} 次。"),
        )
    },
    "smallest_input.zeros": ("{zeros} 全為 0 時，{first} 是 {got}，應為 {expected}", ""),
    "known_mistake": ("{said}", ""),
    "rows_scaled": (
        "{array} 的每個錯誤列都是正確的列乘上該列自己的倍數（抽樣的列中為 {low} 到 {high}）",
        "請檢查每一列除以什麼。",
    ),
    "output_zero": ("錯誤的值全都正好是 0：這部分輸出可能從未寫入（grid、邊界判斷、複製回主機），或寫入了 0", ""),
    "output_not_finite": (
        "{of} 個錯誤值中有 {count} 個是 NaN 或無限大：請檢查對大數取 exp（是否先減去該列的最大值？）、0/0（總和一直是 0）、"
        "inf − inf，或從未寫入的記憶體",
        "",
    ),
    "output_overflows": ("錯誤的值除了最高的位元之外都正確：有 {bits} 位元的數溢位", ""),
    "precision_lost": (
        "值與正確值接近[（最大誤差 {error}）]：看來是精度損失，例如總和或分數以較小的型別存放，或總和少算、重複算了幾項",
        "",
    ),
    "not_finite": ("{array} 在此行變成 {what}[：{computed}]", ""),
    "wrong_value_from": ("{array} 的錯誤值來自此處", ""),
    **{
        f"repaired.{how}": (f"{said}：改成 `{{new}}` 後，試過的 {{samples}} 個範例全部正確", "")
        for how, said in (
            ("comparison", "`{old}` 的比較有誤"),
            ("rounding", "`{old}` 被向下取整"),
            ("axis", "`{old}` 用錯了變數"),
            ("name", "`{old}` 用錯了變數"),
            ("number", "數字 {old} 有誤"),
            ("width", "`{old}` 裡的乘數不對"),
            ("called", "`{old}` 呼叫了錯的函式"),
            ("indices", "`{old}` 的索引順序有誤"),
            ("index", "`{old}` 的位置有誤"),
            ("factor", "`{old}` 的係數有誤"),
            ("base", "`{old}` 的指數底數有誤"),
            ("size", "`{old}` 太小"),
        )
    },
    "repaired.reset": ("和沒有重設：在此加上 `{new}` 後，試過的 {samples} 個範例全部正確", ""),
}

CHINESE = Catalogue(
    {**_SENTENCES, **chinese_cuda.SENTENCES, **chinese_calls.SENTENCES},
    {**_WORDS, **chinese_cuda.WORDS, **chinese_calls.WORDS},
    {**_PHRASES, **chinese_cuda.PHRASES},
)
